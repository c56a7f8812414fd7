"""The policy document: every member, type and range."""

import copy
from fractions import Fraction
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.bodies import LONGEST, WindowBody
from ragaudit.ledger.messages.policy import MAX_CHECKPOINTS, Policy, exact

ORIGIN = "rag.example.com/ragaudit/w1"


def private(number: Any) -> Any:
    return PrivateKey.from_seed(bytes([number]) * 32)


def hex_key(number: Any) -> Any:
    return private(number).public.raw.hex()


def vkey(name: Any, algorithm: Any, number: Any) -> str:
    return str(SigningKey(name, algorithm, private(number)).verifier_key)


POLICY: dict[str, Any] = {
    "format": "ragaudit/v1/policy",
    "provider": "rag.example.com",
    "window": "w1",
    "start": 1_800_000_000,
    "end": 1_800_086_400,
    "previous_checkpoint": None,
    "epsilon_acc": "1",
    "delta_acc": "0.000001",
    "delta_policy": "0.00001",
    "sigma": "10.5",
    "relation": "replace",
    "rows_per_document": 1,
    "norm_bound": 127,
    "dimension": 256,
    "top_k_max": 20,
    "queries_per_account": 200,
    "slots": 100,
    "coalition_max": 10,
    "tenants": [{"id": "alpha", "owner_key": None}, {"id": "beta", "owner_key": None}],
    "calibration": "exact Gaussian accounting at r queries",
    "sampler": {"id": "ragaudit/v1/dgs", "distance": "2^-100"},
    "activation_instants": [1_799_990_000, 1_800_043_200, 1_800_100_000],
    "activation_rounds": [None, None, None],
    "beacon": {"kind": "none"},
    "query_text_disclosure": "sampled",
    "embedder_tolerance": 0,
    "estimator": {
        "theta": "0.9", "tau_seconds": 3600, "sketch_bits": 256, "seed": "05" * 32,
        "hamming_threshold": 40,
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
        "mode": "B",
        "beta": "0.01",
        "tenants": {"eta": "0.05", "minimum": 30},
        "submitters": {"by": "account", "eta": "0.05", "minimum": 30},
        "deadline_seconds": 86_400,
    },
    "merge_delay_seconds": 60,
    "clock_skew_seconds": 5,
    "promise_life_seconds": 300,
    "claim_margin_seconds": 5,
    "release_seconds": 20,
    "keys": {
        "arbiter": None, "log": vkey(ORIGIN, ED25519, 1), "provider": hex_key(2),
        "cosigner": vkey("regulator.example/cosigner", COSIGNATURE_V1, 3), "verifier": hex_key(4),
        "verdict": hex_key(5),
    },
    "experiment_seed": None,
}  # fmt: skip


def changed(path: Any, value: Any) -> Any:
    policy = copy.deepcopy(POLICY)
    *parents, last = path.split(".")
    place = policy
    for name in parents:
        place = place[name]
    place[last] = value
    return policy


def previous(origin: str = "rag.example.com/ragaudit/w0") -> Any:
    key = SigningKey(origin, ED25519, private(9))
    return sign_checkpoint(Checkpoint(origin, MemoryTree([b"x"]).head()), key).encode().decode()


def test_a_policy_is_read_and_digested() -> None:
    data = canonical_json.dumps(POLICY)
    policy = Policy.parse(data)
    assert policy == Policy.from_json(POLICY)
    assert policy.encode() == data
    assert policy.to_json() == POLICY
    assert policy.digest == structure("policy", data)
    assert policy.origin == ORIGIN == policy.keys.log.name
    assert policy.tenants == {"alpha": None, "beta": None}
    assert (policy.activations, policy.sampling_instant) == (3, 1_800_100_000)
    assert policy.estimator.seed == b"\x05" * 32
    assert policy.keys.provider == private(2).public
    assert exact(policy.sigma) == Fraction(21, 2)


def test_a_policy_of_the_most_tenants_is_read() -> None:
    """With short names, so that its bytes hold the most objects, and with the longest."""
    for width in (5, 63):
        tenants = [{"id": f"{number:0{width}}", "owner_key": None} for number in range(10_001)]
        data = canonical_json.dumps({**POLICY, "tenants": tenants[:-1]})
        assert len(Policy.parse(data).tenants) == 10_000
        assert 2 * len(data) + 2**20 < LONGEST[WindowBody]
        with pytest.raises(MalformedPolicy, match="tenants"):
            Policy.from_json({**POLICY, "tenants": tenants})


def by_field(*rows: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Each value of a row with the field that the row begins with."""
    return [(row[0], value) for row in rows for value in row[1:]]


GOOD = by_field(
    ("start", 1_799_990_000),
    ("end", 1_800_000_001 + 43_200),
    # "0.000992001985": just above 16 / 16129
    ("sigma", "0.000992001985", "68169857.261826"),
    ("slots", 250_000),
    ("coalition_max", 100),
    ("keys.arbiter", hex_key(6)),
    ("claim_margin_seconds", 86_399),
    ("release_seconds", 86_399),
    ("previous_checkpoint", previous()),
)


@for_each(("path", "value"), GOOD)
def test_values_at_the_ends_of_their_ranges(path: Any, value: Any) -> None:
    Policy.from_json(changed(path, value))


BAD = by_field(
    # "w2": the log's key is another window's
    ("window", "w2"),
    # 1_799_989_999: before the first activation
    ("start", 1_799_989_999),
    # 1_800_043_200: at the last activation before the sampling instant
    # 1_800_100_001: after the sampling instant
    ("end", 1_800_000_000, 1_800_000_000 + 400 * 86_400 + 1, 1_800_043_200, 1_800_100_001),
    (
        "previous_checkpoint", "text", previous(ORIGIN), previous("other.example/ragaudit/w0"),
        previous("rag.example.com/ragaudit/w.0"),
    ),
    ("sigma", "0.000992001984", "68169857.261827"),
    ("norm_bound", 128),
    # 500_001: times 100 slots
    ("queries_per_account", 500_001),
    ("slots", 250_001),
    ("coalition_max", 101),
    ("tenants", POLICY["tenants"][::-1], POLICY["tenants"][:1] * 2),
    # [1_799_990_000, 1_800_100_000]: as many rounds as instants
    (
        "activation_instants",
        [1_799_990_000, 1_799_990_000, 1_800_100_000],
        [1_799_990_000, 1_800_100_000],
    ),
    ("activation_rounds", [None, None], [None, None, 7]),
    ("estimator.sketch_bits", 65),
    ("estimator.hamming_threshold", 257),
    # 86_400: as long as the window
    ("claim_margin_seconds", 86_400),
    # 86_400: at the deadline
    ("release_seconds", 86_400),
    (
        "keys.log",
        vkey("rag.example.com/ragaudit/w2", ED25519, 1),
        vkey(ORIGIN, COSIGNATURE_V1, 1),
    ),
    ("keys.cosigner", vkey("regulator.example/cosigner", ED25519, 3)),
    ("keys.arbiter", hex_key(4)),
    ("keys.verdict", hex_key(4)),
    ("keys.verifier", hex_key(1)),
    ("keys.provider", hex_key(3)),
)  # fmt: skip


@for_each(("path", "value"), BAD)
def test_values_out_of_range_are_refused(path: Any, value: Any) -> None:
    with pytest.raises(MalformedPolicy):
        Policy.from_json(changed(path, value))


def test_instants_that_follow_from_a_policy() -> None:
    policy = Policy.from_json(POLICY)
    assert policy.last_promise == 1000 * (1_800_086_400 - 5)
    assert policy.release_time == 1000 * (1_800_100_000 + 20)
    assert policy.checkpoint_spacing == 0.5


def test_checkpoints_of_a_long_window_are_spaced_out_within_the_merge_delay() -> None:
    """400 days: one checkpoint every 172.8 s keeps below the cap, 60 s of delay do not."""
    length = 400 * 86_400
    instants = [POLICY["start"], POLICY["start"] + length]
    long = {
        **POLICY,
        "end": POLICY["start"] + length,
        "activation_instants": instants,
        "activation_rounds": [None, None],
    }
    with pytest.raises(MalformedPolicy, match="merge_delay_seconds"):
        Policy.from_json(long)
    policy = Policy.from_json({**long, "merge_delay_seconds": 346})
    assert length / policy.checkpoint_spacing == MAX_CHECKPOINTS // 2
    with pytest.raises(MalformedPolicy, match="merge_delay_seconds"):
        Policy.from_json({**long, "merge_delay_seconds": 345})


@for_each(
    ("path", "value"),
    [
        ("sampler", {"id": "ragaudit/v2/dgs", "distance": "2^-100"}),
        ("sampler.distance", "2^-80"),
        ("beacon", {"kind": "nist"}),
        ("filter_grammar", "v1"),
        ("proof_mode", "eager"),
        ("tenants", [{"id": "alpha", "owner_key": hex_key(9)}]),
    ],
)
def test_what_is_not_known_is_unsupported(path: Any, value: Any) -> None:
    with pytest.raises(UnsupportedError):
        Policy.from_json(changed(path, value))


@for_each("text", ["", "1.", "-1", "1e5", "1000000000", "NaN"])
def test_decimals_are_exact_or_refused(text: Any) -> None:
    with pytest.raises(MalformedPolicy):
        exact(text)


def test_decimals_are_compared_exactly() -> None:
    # In doubles 10 * 1e-6 is below 1e-5.
    assert exact("0.00001") == 10 * exact("0.000001")
