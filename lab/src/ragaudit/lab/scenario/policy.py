"""The policy of the scenario, the keys that it names, and the terms under which it is audited."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from ragaudit.encoding.parameters import B
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.messages.columns import PublicColumn
from ragaudit.ledger.messages.policy import LARGE_B, Policy
from ragaudit.ledger.messages.policy_terms import FILTER_GRAMMAR, NOISE_MEMBERS
from ragaudit.privacy.coalition import hamming_threshold
from ragaudit.verifier.terms import Terms

START: Final = 1_900_000_000
END: Final = START + 120
# t_1 <= start < t_2 < end <= t_3, the sampling instant (spec 5.2).
INSTANTS: Final = (START - 10, START + 60, END + 50)
DEADLINE_SECONDS: Final = 1000
COUNTERSIGNED: Final = START - 30  # what happens when, in a window that goes as it should
CLOSED: Final = END + 1
# Between the end and the sampling instant, or the verifier takes nothing (spec 8.3).
HANDED_OVER: Final = END + 5
CHALLENGED: Final = INSTANTS[-1] + 1
# The fewest that a policy may have (spec 5.2).
BITS: Final = 64
THETA: Final = "0.9"

COLUMNS: Final = (PublicColumn("shelf", "string"), PublicColumn("year", "integer"))
"""The public columns of `full_policy_document`, by name."""

THIRD_PARTIES: Final = ("one", "two", "three")
"""The further cosigners that the scenario's verifier knows."""


def third_party(name: str) -> SigningKey:
    """Return the key of a further cosigner: the same in every run."""
    return SigningKey(f"{name}.example", COSIGNATURE_V1, seeded(name))


def seeded(label: str) -> PrivateKey:
    """Return the private key whose seed is the SHA-256 of a label: the same in every run."""
    return PrivateKey.from_seed(sha256(label.encode()).digest())


SMALL_TERMS: Final = Terms.of(
    {
        "most_beta": "0.5",
        "most_eta_tenants": "0.5",
        "least_sample_tenants": 1,
        "least_coalition_max": 2,
        "most_epsilon_acc": "100",
        "least_tau_seconds": 1,
        "least_sketch_bits": 64,
        "most_clock_skew_seconds": 3600,
        "most_merge_delay_seconds": 3600,
        "least_sampling_delay_seconds": 0,
        "least_claim_margin_seconds": 1,
        "most_claim_margin_share": "0.9",
        "most_generation_epsilon": "1000",
        "most_overlapping_windows": 100,
        "least_answer_delay_seconds": 1,
        "further_cosigners": sorted(str(third_party(each).verifier_key) for each in THIRD_PARTIES),
    }
)
"""A coalition of two, a handful of records: the shipped terms are for windows in earnest."""


def small_terms_file(folder: Path, **changes: object) -> Path:
    """Write `SMALL_TERMS` as TOML and return the file's path.

    Args:
        folder: where ``terms.toml`` goes; made if it is missing.
        changes: other terms, by member.
    """
    path = folder / "terms.toml"
    folder.mkdir(parents=True, exist_ok=True)
    terms = Terms.of({**SMALL_TERMS.to_json(), **changes})
    path.write_text(terms.to_toml(), encoding="utf-8")
    return path


def key_members(
    *,
    log: SigningKey,
    provider: PrivateKey,
    cosigner: SigningKey,
    verifier: PrivateKey,
    verdict: PrivateKey,
    arbiter: PrivateKey | None = None,
) -> dict[str, str | None]:
    """Return the policy's member "keys" (docs/spec/05-records.md §5.2).

    Args:
        log, cosigner: signers of notes; their verifier keys are C2SP vkeys, the others' are hex.
        provider: signs receipts, promises and refusals.
        verifier: signs countersignature, activations and challenge.
        verdict: signs the verdict.
        arbiter: signs findings; None for a policy without an arbiter.
    """
    return {
        "arbiter": None if arbiter is None else arbiter.public.raw.hex(),
        "log": str(log.verifier_key),
        "provider": provider.public.raw.hex(),
        "cosigner": str(cosigner.verifier_key),
        "verifier": verifier.public.raw.hex(),
        "verdict": verdict.public.raw.hex(),
    }


def policy_document(
    keys: Mapping[str, str | None], changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the scenario's policy: every member, small enough that every record is checked.

    Args:
        keys: the member "keys"; `key_members` makes it.
        changes: other values by member, or by "member/member" for one inside an object.

    Returns:
        A document of its own that `Policy` accepts; ``changes`` may make it one that it refuses.
    """
    document: dict[str, Any] = {
        "format": Policy.FORMAT,
        "provider": "rag.example",
        "window": "w1",
        "start": START,
        "end": END,
        "previous_checkpoint": None,
        "epsilon_acc": "20",
        "delta_acc": "0.00001",
        "delta_policy": "0.00001",
        "sigma": "4",
        "relation": "replace",
        "rows_per_document": 1,
        "norm_bound": B,
        "dimension": 8,
        "top_k_max": 3,
        "queries_per_account": 4,
        "slots": 6,
        "coalition_max": 2,
        "tenants": [{"id": tenant, "owner_key": None} for tenant in ("acme", "beta")],
        "calibration": "chosen for a test",
        "sampler": {"id": "ragaudit/v1/dgs", "distance": "2^-100"},
        "activation_instants": list(INSTANTS),
        "beacon": {"kind": "none"},
        "query_text_disclosure": "sampled",
        "embedder_tolerance": 0,
        "estimator": {
            "theta": THETA,
            "tau_seconds": 1,
            "sketch_bits": BITS,
            "seed": sha256(b"sketch").hexdigest(),
            "hamming_threshold": hamming_threshold(THETA, BITS),
        },
        "privacy": "gaussian",
        "metric": "cosine",
        "largest_norm": None,
        "public_columns": [],
        "filter_grammar": "empty",
        "query_kinds": ["text"],
        "retry_seconds": 0,
        "versions": False,
        "proof_mode": "on-demand",
        "audit": {
            "mode": "A",
            "beta": "0.4",
            "tenants": {"eta": "0.3", "minimum": 1},
            "submitters": {"by": "account", "eta": "0.3", "minimum": 1},
            "deadline_seconds": DEADLINE_SECONDS,
        },
        "merge_delay_seconds": 30,
        "clock_skew_seconds": 5,
        "promise_life_seconds": 20,
        "claim_margin_seconds": 10,
        "release_seconds": 100,
        "keys": dict(keys),
        "experiment_seed": None,
    }
    for path, value in (changes or {}).items():
        member, _, inner = path.partition("/")
        if inner:
            document[member][inner] = value
        else:
            document[member] = value
    # One for each instant, however many a test asks for.
    document.setdefault("activation_rounds", [None] * len(document["activation_instants"]))
    return document


def full_policy_document(
    keys: Mapping[str, str | None], changes: Mapping[str, Any] | None = None, *, noised: bool
) -> dict[str, Any]:
    """Return the scenario's policy where filters, vectors and later versions are allowed.

    Args:
        keys: the member "keys".
        changes: as `policy_document` takes them.
        noised: whether scores are noised; if not, B is 4095 and no member speaks of noise.

    Returns:
        A document of its own, as `policy_document`.
    """
    members: dict[str, Any] = {
        "privacy": "gaussian" if noised else "none",
        "public_columns": [each.to_json() for each in COLUMNS],
        "filter_grammar": FILTER_GRAMMAR,
        "query_kinds": ["text", "vector"],
        "retry_seconds": 60,
        "versions": True,
    }
    if not noised:
        members |= {"norm_bound": LARGE_B, "sampler": None, **dict.fromkeys(NOISE_MEMBERS)}
    return policy_document(keys, {**members, **(changes or {})})
