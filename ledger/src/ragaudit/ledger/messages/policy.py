"""The policy of a window (docs/spec/05-records.md §5.2): parsed strictly, digested.

Only the form is checked here: every member, type, range, and what members say of each other.
Whether sigma gives the promised privacy, and the threshold fits theta, is the verifier's to say.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.parameters import LIMITS, SQUARED_NORM, B
from ragaudit.encoding.relations import FIXED_SIZE
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import DECIMAL, is_decimal
from ragaudit.ledger.errors import MalformedNote, MalformedPolicy, MalformedRecord
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, MAX_NOTE_BYTES, VerifierKey
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.identifiers import (
    check_provider,
    check_tenant,
    check_window,
    log_origin,
)

FORMAT = "ragaudit/v1/policy"
MAX_SECONDS = 2**40
MAX_WINDOW_SECONDS = 400 * 86_400
MAX_INSTANTS = 10_000
MAX_CHECKPOINTS = 400_000  # that a verifier cosigns of one window
MAX_KEYS = 50_000_000  # slots times queries per account: the leaves of C_seed

_MEMBERS = """format provider window start end previous_checkpoint epsilon_acc delta_acc
    delta_policy sigma relation rows_per_document norm_bound dimension top_k_max
    queries_per_account slots coalition_max tenants calibration sampler activation_instants
    activation_rounds beacon query_text_disclosure embedder_tolerance estimator filter_grammar
    proof_mode audit merge_delay_seconds clock_skew_seconds promise_life_seconds
    claim_margin_seconds release_seconds keys experiment_seed"""
_FIXED: dict[str, object] = {  # what version 1 supports
    "sampler": {"id": "ragaudit/v1/dgs", "distance": "2^-100"},
    "beacon": {"kind": "none"},
    "filter_grammar": "empty",
    "proof_mode": "on-demand",
}


@dataclass(frozen=True, slots=True)
class Estimator:
    """Parameters of the coalition estimate.

    Attributes:
        theta: cosine from which two queries count as alike, a decimal below 1.
        tau_seconds: within which alike queries are linked.
        sketch_bits, seed: b, a multiple of 8, and 32 bytes, of the sketches.
    """

    theta: str
    tau_seconds: int
    sketch_bits: int
    seed: bytes
    hamming_threshold: int


@dataclass(frozen=True, slots=True)
class StratumTerms:
    """Of one kind of strata: ``eta``, the largest probability to miss, and the least sample."""

    eta: str
    minimum: int


@dataclass(frozen=True, slots=True)
class AuditTerms:
    """Mode A (every record) or B (samples), how each kind is drawn, and the prover's deadline.

    Attributes:
        beta: the share of bad records that a sample is to find.
        tenants: of the strata that hold all records of a tenant.
        submitters: of the strata that hold the records whose receipts were submitted.
        submitters_by: whether those are one per "account" or one per "tenant".
    """

    mode: str
    beta: str
    tenants: StratumTerms
    submitters: StratumTerms
    submitters_by: str
    deadline_seconds: int


@dataclass(frozen=True, slots=True)
class PolicyKeys:
    """The public keys of a window, pairwise different; ``arbiter`` None: it has none."""

    arbiter: PublicKey | None
    log: VerifierKey
    provider: PublicKey
    cosigner: VerifierKey
    verifier: PublicKey
    verdict: PublicKey


@dataclass(frozen=True, slots=True)
class Policy:
    """A parsed policy; members as in the specification, decimals as their text.

    Attributes:
        canonical: the document itself, which the digest names.
        start, end, activation_instants: Unix seconds.
    """

    canonical: bytes
    provider: str
    window: str
    start: int
    end: int
    previous_checkpoint: str | None
    epsilon_acc: str
    delta_acc: str
    delta_policy: str
    sigma: str
    relation: str
    rows_per_document: int
    dimension: int
    top_k_max: int
    queries_per_account: int
    slots: int
    coalition_max: int
    tenants: tuple[str, ...]
    calibration: str
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

    @property
    def digest(self) -> bytes:
        """C_policy, 32 bytes."""
        return structure("policy", self.canonical)

    @property
    def origin(self) -> str:
        """Origin of the window's log."""
        return log_origin(self.provider, self.window)

    @property
    def activations(self) -> int:
        """A, the number of activation instants; the last is the sampling instant."""
        return len(self.activation_instants)

    @property
    def sampling_instant(self) -> int:
        """t_A, in Unix seconds."""
        return self.activation_instants[-1]

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
        value: dict[str, Any] = canonical_json.loads(self.canonical)
        return value

    @classmethod
    def parse(cls, data: bytes) -> "Policy":
        """Return the policy of canonical bytes: another spelling would have another digest.

        Raises:
            MalformedPolicy: not canonical, a member missing, unknown, ill-typed or out of range.
            UnsupportedError: a well-formed value which version 1 does not know.
        """
        try:
            value = canonical_json.loads(data)
        except MalformedError as error:
            raise MalformedPolicy(error.what, where=error.where, expected=error.expected) from error
        return cls.from_json(value)

    @classmethod
    def from_json(cls, value: Any) -> "Policy":
        """Return the policy of a JSON value; raises as `parse`."""
        try:
            canonical = canonical_json.dumps(value)
            return _parse(Fields(value, _MEMBERS, MalformedPolicy), canonical)
        except (MalformedNote, MalformedRecord) as error:
            raise MalformedPolicy(error.what, where=error.where, expected=error.expected) from error


def exact(text: str) -> Fraction:
    """Return the exact value of a policy decimal; MalformedPolicy for any other text."""
    if not is_decimal(text):
        raise MalformedPolicy("not a decimal", expected=DECIMAL)
    return Fraction(text)


def _parse(f: Fields, canonical: bytes) -> Policy:
    f.constant("format", FORMAT)
    f.constant("norm_bound", B)
    for name, supported in _FIXED.items():
        if f.raw(name) != supported:
            raise UnsupportedError("not supported", where=name, expected=str(supported))
    provider = check_provider(f.text("provider", 1, 64))
    window = check_window(f.text("window", 1, 64))
    start = f.integer("start", 1, MAX_SECONDS)
    end = f.integer("end", start + 1, start + MAX_WINDOW_SECONDS)
    slots = f.integer("slots", 1, 1_000_000)
    queries = f.integer("queries_per_account", 1, min(1_000_000, MAX_KEYS // slots))
    instants = _instants(f, start, end)
    audit = _audit(f)
    return Policy(
        canonical=canonical,
        provider=provider,
        window=window,
        start=start,
        end=end,
        previous_checkpoint=_previous_checkpoint(f, provider, window),
        epsilon_acc=_decimal(f, "epsilon_acc", Fraction(1000)),
        delta_acc=_decimal(f, "delta_acc", Fraction(1, 10)),
        delta_policy=_decimal(f, "delta_policy", Fraction(1, 10)),
        sigma=_sigma(f),
        relation=f.choice("relation", *FIXED_SIZE),
        rows_per_document=f.integer("rows_per_document", 1, 1000),
        dimension=f.integer("dimension", 1, LIMITS.dimension),
        top_k_max=f.integer("top_k_max", 1, LIMITS.top_k),
        queries_per_account=queries,
        slots=slots,
        coalition_max=f.integer("coalition_max", 1, slots),
        tenants=_tenants(f),
        calibration=f.text("calibration", 1, 500),
        activation_instants=instants,
        query_text_disclosure=f.choice("query_text_disclosure", "sampled", "none"),
        embedder_tolerance=f.integer("embedder_tolerance", 0, 65_535),
        estimator=_estimator(f),
        audit=audit,
        merge_delay_seconds=_merge_delay(f, instants[-1] - start),
        clock_skew_seconds=f.integer("clock_skew_seconds", 1, 86_400),
        promise_life_seconds=f.integer("promise_life_seconds", 1, 86_400),
        claim_margin_seconds=f.integer("claim_margin_seconds", 1, min(86_400, end - start - 1)),
        release_seconds=f.integer("release_seconds", 1, audit.deadline_seconds - 1),
        keys=_keys(f, log_origin(provider, window)),
        experiment_seed=f.optional(f.text, "experiment_seed", 1, 500),
    )


def _decimal(f: Fields, name: str, high: Fraction | None = None, below: int = 0) -> str:
    """Return a decimal above 0, at most ``high`` or, without one, below ``below``."""
    value = f.raw(name)
    if not isinstance(value, str) or not is_decimal(value):
        raise f.error(name, "not a decimal", expected=DECIMAL)
    inside = exact(value) <= high if high is not None else exact(value) < below
    if exact(value) <= 0 or not inside:
        raise f.error(name, "out of range", expected=f"above 0, {high or f'below {below}'}")
    return value


def _sigma(f: Fields) -> str:
    sigma = _decimal(f, "sigma", Fraction(2**40))
    units = exact(sigma) * SQUARED_NORM
    if not LIMITS.sigma_units_min <= units <= LIMITS.sigma_units_max:
        raise f.error("sigma", "out of range", expected="16 <= sigma * 16129 <= 2^40")
    return sigma


def _previous_checkpoint(f: Fields, provider: str, window: str) -> str | None:
    if f.raw("previous_checkpoint") is None:
        return None
    note = f.text("previous_checkpoint", 1, MAX_NOTE_BYTES)
    origin = parse_checkpoint(note.encode()).checkpoint.origin
    before = origin.removeprefix(f"{provider}/ragaudit/")
    if before in (origin, window):  # another provider's, or this window itself
        raise f.error("previous_checkpoint", "not of another window of this provider")
    check_window(before)
    return note


def _tenants(f: Fields) -> tuple[str, ...]:
    names = []
    for where, item in f.objects("tenants", 1, 1000):
        tenant = Fields(item, "id owner_key", MalformedPolicy, where)
        names.append(check_tenant(tenant.text("id", 1, 64)))
        if tenant.raw("owner_key") is not None:
            raise UnsupportedError("owners' keys", where=where, expected="owner_key null")
    if names != sorted(set(names)):
        raise f.error("tenants", "ids not rising and distinct")
    return tuple(names)


def _instants(f: Fields, start: int, end: int) -> tuple[int, ...]:
    instants = f.integers("activation_instants", (2, MAX_INSTANTS), 1, MAX_SECONDS)
    if any(a >= b for a, b in pairwise(instants)):
        raise f.error("activation_instants", "not rising")
    # The last instant comes after the end: its value, the sample's seed, is known to nobody before.
    if not (instants[0] <= start and instants[-2] < end <= instants[-1]):
        raise f.error("activation_instants", "do not fit", "t_1 <= start, t_(A-1) < end <= t_A")
    if f.raw("activation_rounds") != [None] * len(instants):
        raise f.error("activation_rounds", "not null each", f"{len(instants)} times null")
    return instants


def _merge_delay(f: Fields, seconds: int) -> int:
    # At least twice the spacing of checkpoints, so that each covers what came since the last.
    return f.integer("merge_delay_seconds", max(1, -(-4 * seconds // MAX_CHECKPOINTS)), 86_400)


def _estimator(f: Fields) -> Estimator:
    names = "theta tau_seconds sketch_bits seed hamming_threshold"
    e = Fields(f.raw("estimator"), names, MalformedPolicy, "estimator")
    bits = e.integer("sketch_bits", LIMITS.sketch_bits_min, LIMITS.sketch_bits_max)
    if bits % 8:
        raise e.error("sketch_bits", "not a multiple of 8")
    return Estimator(
        theta=_decimal(e, "theta", below=1),
        tau_seconds=e.integer("tau_seconds", 1, 10**7),
        sketch_bits=bits,
        seed=e.hex("seed", 32),
        hamming_threshold=e.integer("hamming_threshold", 0, bits),
    )


def _audit(f: Fields) -> AuditTerms:
    names = "mode beta tenants submitters deadline_seconds"
    a = Fields(f.raw("audit"), names, MalformedPolicy, "audit")
    tenants = Fields(a.raw("tenants"), "eta minimum", MalformedPolicy, "audit.tenants")
    submitters = Fields(a.raw("submitters"), "by eta minimum", MalformedPolicy, "audit.submitters")
    return AuditTerms(
        mode=a.choice("mode", "A", "B"),
        beta=_decimal(a, "beta", below=1),
        tenants=_stratum(tenants),
        submitters=_stratum(submitters),
        submitters_by=submitters.choice("by", "account", "tenant"),
        deadline_seconds=a.integer("deadline_seconds", 1, 10**7),
    )


def _stratum(f: Fields) -> StratumTerms:
    return StratumTerms(_decimal(f, "eta", below=1), f.integer("minimum", 0, 10**6))


def _keys(f: Fields, origin: str) -> PolicyKeys:
    names = "arbiter log provider cosigner verifier verdict"
    k = Fields(f.raw("keys"), names, MalformedPolicy, "keys")
    keys = PolicyKeys(
        arbiter=k.optional(k.public_key, "arbiter"),
        log=VerifierKey.parse(k.text("log", 1, 512)),
        provider=k.public_key("provider"),
        cosigner=VerifierKey.parse(k.text("cosigner", 1, 512)),
        verifier=k.public_key("verifier"),
        verdict=k.public_key("verdict"),
    )
    if keys.log.algorithm != ED25519 or keys.log.name != origin:
        raise k.error("log", "not the log's key", expected=f"{origin}, type 0x01")
    if keys.cosigner.algorithm != COSIGNATURE_V1:
        raise k.error("cosigner", "not a cosigner's key", expected="type 0x04")
    # One key in two roles would let one party answer for the other.
    every = [keys.log.public, keys.provider, keys.cosigner.public, keys.verifier, keys.verdict]
    every += [] if keys.arbiter is None else [keys.arbiter]
    if len(set(every)) < len(every):
        raise f.error("keys", "one key in two roles", expected="different keys")
    return keys
