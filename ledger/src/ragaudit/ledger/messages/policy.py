"""The policy of a window (docs/spec/05-records.md §5.2): parsed strictly, digested.

Only the form is checked here. Whether sigma gives the promised privacy, and the threshold fits
theta, is the verifier's to say.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.parameters import LIMITS, B
from ragaudit.ledger.errors import MalformedNote, MalformedPolicy, MalformedRecord
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.generation_terms import GenerationTerms, KeywordVoting
from ragaudit.ledger.messages.identifiers import check_provider, check_window, log_origin
from ragaudit.ledger.messages.kernel import OrNull, Text
from ragaudit.ledger.messages.policy_terms import (
    DIRECTION,
    FILTER_GRAMMAR,
    MAX_CHECKPOINTS,
    MAX_INSTANTS,
    MAX_SECONDS,
    NOISE_MEMBERS,
    AuditTerms,
    BeaconTerms,
    CosignerTerms,
    Demand,
    Estimator,
    Metric,
    NoiseTerms,
    OwnerTerms,
    PolicyKeys,
    QueryKind,
    RetrievalTerms,
    StratumTerms,
    SubmitterTerms,
    exact,
    read_beacon,
    read_cosigners,
    read_instants,
    read_merge_delay,
    read_previous_checkpoint,
    read_tenants,
)

__all__ = [
    "FORMAT",
    "MAX_CHECKPOINTS",
    "MAX_INSTANTS",
    "AuditTerms",
    "Estimator",
    "Metric",
    "NoiseTerms",
    "Policy",
    "PolicyKeys",
    "QueryKind",
    "RetrievalTerms",
    "StratumTerms",
    "SubmitterTerms",
    "exact",
]

FORMAT = "ragaudit/v1/policy"
LARGE_B = 4095  # of windows without noise
MAX_WINDOW_SECONDS = 400 * 86_400
MAX_KEYS = 50_000_000  # slots times queries per account: the leaves of C_seed

_MEMBERS = """format provider window start end previous_checkpoint epsilon_acc delta_acc
    delta_policy sigma relation rows_per_document norm_bound dimension top_k_max
    queries_per_account slots coalition_max tenants calibration sampler activation_instants
    activation_rounds beacon query_text_disclosure embedder_tolerance estimator filter_grammar
    proof_mode audit merge_delay_seconds clock_skew_seconds promise_life_seconds
    claim_margin_seconds release_seconds keys experiment_seed privacy metric largest_norm
    public_columns query_kinds retry_seconds versions"""
_OPTIONAL = (
    "account_index", "coalition_estimate", "cosigners", "epochs", "generation", "owners",
    "time_stamps",
)  # fmt: skip
_SAMPLER: dict[str, object] = {"id": "ragaudit/v1/dgs", "distance": "2^-100"}


@dataclass(frozen=True, slots=True)
class Policy:
    """A parsed policy; members as in the specification, decimals as their text.

    Attributes:
        canonical: the document itself, which the digest names.
        start, end, activation_instants: Unix seconds.
        noise: None in an integrity window (``privacy`` "none"): nothing is added to scores, no
            epsilon is claimed, and the selection is the exact top K.
        norm_bound: B, 127 or, without noise only, 4095.
        account_index: whether the log ends with an account index (5.14).
        by_direction: whether the coalition estimate is that of 7.5, not of 7.2.
        cosigners: whom else the checkpoints are shown to; None for nobody.
        epochs: whether the log may go on under later seed epochs (5.15).
        time_stamps: whether the audit fails without them; None: none are asked for.
        beacon: whose rounds are mixed into activations and sample; None with beacon "none".
        generation: of the generation channel; None in a window without one.
        owners: what owners of documents can check (5.16); None: nothing.
    """

    canonical: bytes
    provider: str
    window: str
    start: int
    end: int
    previous_checkpoint: str | None
    noise: NoiseTerms | None
    retrieval: RetrievalTerms
    norm_bound: int
    dimension: int
    top_k_max: int
    queries_per_account: int
    slots: int
    tenants: tuple[str, ...]
    activation_instants: tuple[int, ...]
    query_text_disclosure: str
    embedder_tolerance: int
    estimator: Estimator
    audit: AuditTerms
    merge_delay_seconds: int
    clock_skew_seconds: int
    promise_life_seconds: int
    claim_margin_seconds: int
    release_seconds: int
    keys: PolicyKeys
    experiment_seed: str | None
    account_index: bool = False
    by_direction: bool = False
    cosigners: CosignerTerms | None = None
    epochs: bool = False
    time_stamps: bool | None = None
    beacon: BeaconTerms | None = None
    generation: GenerationTerms | None = None
    owners: OwnerTerms | None = None

    @property
    def digest(self) -> bytes:
        """C_policy, 32 bytes."""
        return structure("policy", self.canonical)

    @property
    def noised(self) -> bool:
        """Whether scores are noised: a claim about privacy is made."""
        return self.noise is not None

    @property
    def marks_null_rows(self) -> bool:
        """Whether later versions say which of their rows are null rows (5.4): not under noise."""
        return not self.noised

    @property
    def squared_norm(self) -> int:
        """B², the norm of completed rows and the largest score (cosine 1)."""
        return self.norm_bound * self.norm_bound

    @property
    def noise_terms(self) -> NoiseTerms:
        """The terms of the noise; UnsupportedError in a window that has none."""
        if self.noise is None:
            # Raised, not None: no arithmetic about noise may go on with a value that is no value.
            raise UnsupportedError("no noise in this window", where="policy", expected="noise")
        return self.noise

    @property
    def epsilon_acc(self) -> str:
        """Of `noise_terms`; raises as it does, like the seven below."""
        return self.noise_terms.epsilon_acc

    @property
    def delta_acc(self) -> str:
        """Of `noise_terms`."""
        return self.noise_terms.delta_acc

    @property
    def delta_policy(self) -> str:
        """Of `noise_terms`."""
        return self.noise_terms.delta_policy

    @property
    def sigma(self) -> str:
        """Of `noise_terms`."""
        return self.noise_terms.sigma

    @property
    def relation(self) -> str:
        """Of `noise_terms`."""
        return self.noise_terms.relation

    @property
    def rows_per_document(self) -> int:
        """Of `noise_terms`."""
        return self.noise_terms.rows_per_document

    @property
    def calibration(self) -> str:
        """Of `noise_terms`."""
        return self.noise_terms.calibration

    @property
    def coalition_max(self) -> int:
        """Of `noise_terms`."""
        return self.noise_terms.coalition_max

    @property
    def origin(self) -> str:
        """Origin of the window's log."""
        return log_origin(self.provider, self.window)

    @property
    def activations(self) -> int:
        """A, the number of activation instants."""
        return len(self.activation_instants)

    @property
    def sampling_instant(self) -> int:
        """t_A, in Unix seconds."""
        return self.activation_instants[-1]

    def round_of(self, a: int) -> int | None:
        """Return R_a, the beacon's round of an instant; None without a beacon.

        Args:
            a: 1..A; A is the sampling instant.
        """
        beacon = self.beacon
        return None if beacon is None else beacon.round_at(self.activation_instants[a - 1])

    def release_instant(self, a: int) -> int:
        """Return when n_a may be released, Unix seconds: t_a, or when R_a is due; 1 <= a <= A."""
        beacon, instant = self.beacon, self.activation_instants[a - 1]
        return instant if beacon is None else beacon.chain.time(beacon.round_at(instant))

    @property
    def last_promise(self) -> int:
        """Unix milliseconds after which no promise is made: accounts need time to claim."""
        return 1000 * (self.end - self.claim_margin_seconds)

    @property
    def link_time(self) -> int:
        """Milliseconds within which alike queries are linked: tau and what times may be off by.

        Two clocks, and a record that was dated back as far as check 9 lets it.
        """
        slack = 2 * self.clock_skew_seconds + self.merge_delay_seconds
        return 1000 * (self.estimator.tau_seconds + slack)

    @property
    def promise_life(self) -> int:
        """Milliseconds for which a promise can be kept."""
        return 1000 * self.promise_life_seconds

    @property
    def release_time(self) -> int:
        """Unix milliseconds at which the provider hands its proofs over, whenever they are made."""
        return 1000 * (self.sampling_instant + self.release_seconds)

    @property
    def checkpoint_spacing(self) -> float:
        """Least seconds between two checkpoints, with which a window stays below their cap."""
        return (self.sampling_instant - self.start) / (MAX_CHECKPOINTS // 2)

    def encode(self) -> bytes:
        """Return the canonical bytes, the ones that were parsed."""
        return self.canonical

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON value."""
        return cast("dict[str, Any]", canonical_json.loads(self.canonical))

    @classmethod
    def parse(cls, data: bytes) -> "Policy":
        """Return the policy of canonical bytes: another spelling would have another digest.

        Raises:
            MalformedPolicy: not canonical, a member missing, unknown, ill-typed or out of range.
            UnsupportedError: a well-formed value that this code does not know.
        """
        return _of_bytes(data)

    @classmethod
    def from_json(cls, value: Any) -> "Policy":
        """Return the policy of a JSON value; raises as `parse`."""
        held = value if isinstance(value, dict) else {}
        members = " ".join([_MEMBERS, *(name for name in _OPTIONAL if name in held)])
        try:
            canonical = canonical_json.dumps(value)
            return _parse(Fields(value, members, MalformedPolicy), canonical)
        except (MalformedNote, MalformedRecord) as error:
            raise MalformedPolicy(error.what, where=error.where, expected=error.expected) from error


@lru_cache(maxsize=32)  # a service reads the policies of its windows at nearly every request
def _of_bytes(data: bytes) -> Policy:
    try:
        value = canonical_json.loads(data)
    except MalformedError as error:
        raise MalformedPolicy(error.what, where=error.where, expected=error.expected) from error
    return Policy.from_json(value)


def _parse(f: Fields, canonical: bytes) -> Policy:
    f.constant("format", FORMAT)
    for name in ("account_index", "epochs"):
        if name in f.value:
            f.constant(name, True)
    noised = f.choice("privacy", "gaussian", "none") == "gaussian"
    if noised or f.raw("norm_bound") != LARGE_B:
        f.constant("norm_bound", B)
    _check_supported(f, noised)
    provider = check_provider(f.text("provider", 1, 64))
    window = check_window(f.text("window", 1, 64))
    start = f.integer("start", 1, MAX_SECONDS)
    end = f.integer("end", start + 1, start + MAX_WINDOW_SECONDS)
    slots = f.integer("slots", 1, 1_000_000)
    queries = f.integer("queries_per_account", 1, min(1_000_000, MAX_KEYS // slots))
    beacon = read_beacon(f, start)
    instants = read_instants(f, start, end, beacon)
    audit, keys = f.message("audit", AuditTerms), f.message("keys", PolicyKeys)
    keys.check_origin(log_origin(provider, window))
    tenants, owners = read_tenants(f, keys)
    return Policy(
        canonical=canonical,
        provider=provider,
        window=window,
        start=start,
        end=end,
        previous_checkpoint=read_previous_checkpoint(f, provider, window),
        noise=_noise(f, slots, noised=noised),
        retrieval=f.among(RetrievalTerms),
        norm_bound=f.integer("norm_bound", B, LARGE_B),
        dimension=f.integer("dimension", 1, LIMITS.dimension),
        top_k_max=f.integer("top_k_max", 1, LIMITS.top_k),
        queries_per_account=queries,
        slots=slots,
        tenants=tenants,
        activation_instants=instants,
        query_text_disclosure=f.choice("query_text_disclosure", "sampled", "none"),
        embedder_tolerance=f.integer("embedder_tolerance", 0, 65_535),
        estimator=f.message("estimator", Estimator),
        audit=audit,
        merge_delay_seconds=read_merge_delay(f, instants[-1] - start),
        clock_skew_seconds=f.integer("clock_skew_seconds", 1, 86_400),
        promise_life_seconds=f.integer("promise_life_seconds", 1, 86_400),
        claim_margin_seconds=f.integer("claim_margin_seconds", 1, min(86_400, end - start - 1)),
        release_seconds=f.integer("release_seconds", 1, audit.deadline_seconds - 1),
        keys=keys,
        experiment_seed=f.read("experiment_seed", OrNull(Text(1, 500))),
        account_index="account_index" in f.value,
        by_direction="coalition_estimate" in f.value,
        cosigners=read_cosigners(f, keys) if "cosigners" in f.value else None,
        epochs="epochs" in f.value,
        time_stamps=f.message("time_stamps", Demand).required if "time_stamps" in f.value else None,
        beacon=beacon,
        generation=_generation(f, noised=noised) if "generation" in f.value else None,
        owners=owners,
    )


def _check_supported(f: Fields, noised: bool) -> None:
    supported: dict[str, tuple[object, ...]] = {
        "sampler": (_SAMPLER if noised else None,),
        "filter_grammar": ("empty", FILTER_GRAMMAR),
        "proof_mode": ("on-demand",),
    }
    if "coalition_estimate" in f.value:  # without noise there is none
        supported["coalition_estimate"] = (DIRECTION,) if noised else ()
    for name, values in supported.items():
        if f.raw(name) not in values:
            expected = " or ".join(map(str, values))
            raise UnsupportedError("not supported", where=name, expected=expected)


def _noise(f: Fields, slots: int, *, noised: bool) -> NoiseTerms | None:
    if noised:
        noise = f.among(NoiseTerms)
        if noise.coalition_max > slots:
            raise f.error("coalition_max", "more than slots", f"1..{slots}")
        return noise
    # A sigma beside "none" could be read as a promise; there is nothing that it would be of.
    for name in (*NOISE_MEMBERS, "experiment_seed"):
        f.constant(name, None)
    return None


def _generation(f: Fields, *, noised: bool) -> GenerationTerms:
    if not noised or f.raw("versions") is True or "text" not in f.raw("query_kinds"):
        # Without noise no keys are committed to that coins could come from.
        raise UnsupportedError(
            "no generation channel in such a window",
            where="generation",
            expected='privacy "gaussian", one version of each index, and texts as queries',
        )
    terms = f.message("generation", GenerationTerms)
    # A divergence of g rows at once is none of g times one row.
    if isinstance(terms.answerer, KeywordVoting) and f.raw("rows_per_document") != 1:
        what = "dp-ksa with documents of several rows"
        raise UnsupportedError(what, where="rows_per_document", expected="1")
    return terms
