"""The terms of a policy that stand together (docs/spec/05-records.md §5.2), each read strictly."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias, cast

from ragaudit.encoding.parameters import LIMITS, SQUARED_NORM
from ragaudit.encoding.relations import FIXED_SIZE
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import DECIMAL, is_decimal
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, VerifierKey
from ragaudit.ledger.messages.columns import PublicColumn, read_public_columns
from ragaudit.ledger.messages.fields import Fields

Metric: TypeAlias = Literal["cosine", "inner-product", "l2"]
QueryKind: TypeAlias = Literal["text", "vector"]

METRICS: Final = ("cosine", "inner-product", "l2")
FILTER_GRAMMAR: Final = "ragaudit/v1/filter"
DIRECTION: Final = "ragaudit/v1/direction"
"""The coalition estimate of docs/spec/07-coalition.md §7.5."""
DEFAULT_RETRY_SECONDS: Final = 60


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

    @property
    def roles(self) -> dict[str, object]:
        """The keys by their role, without the arbiter's where there is none."""
        roles = {
            "arbiter": self.arbiter, "log": self.log.public, "provider": self.provider,
            "cosigner": self.cosigner.public, "verifier": self.verifier, "verdict": self.verdict,
        }  # fmt: skip
        return {name: key for name, key in roles.items() if key is not None}

    def role(self, key: PublicKey) -> str:
        """Return which of these keys it is, as ``log``; empty if it is none of them."""
        return next((name for name, each in self.roles.items() if each == key), "")

    def mistaken(self, pinned: PublicKey) -> str:
        """Return what is wrong with a pin of `keys.verifier` that is not this policy's.

        It names no key to pin instead: whoever made the policy could then have named its own.

        Args:
            pinned: another key than ``verifier``.
        """
        if role := self.role(pinned):
            return f"the pinned key stands in the policy as keys.{role}, not as keys.verifier"
        return "the policy names another verifier than the pinned one"


def exact(text: str) -> Fraction:
    """Return the exact value of a policy decimal; MalformedPolicy for any other text."""
    if not is_decimal(text):
        raise MalformedPolicy("not a decimal", expected=DECIMAL)
    return Fraction(text)


def read_decimal(f: Fields, name: str, high: Fraction | None = None, below: int = 0) -> str:
    """Return a decimal above 0, at most ``high`` or, without one, below ``below``."""
    value = f.raw(name)
    if not isinstance(value, str) or not is_decimal(value):
        raise f.error(name, "not a decimal", expected=DECIMAL)
    inside = exact(value) <= high if high is not None else exact(value) < below
    if exact(value) <= 0 or not inside:
        raise f.error(name, "out of range", expected=f"above 0, {high or f'below {below}'}")
    return value


@dataclass(frozen=True, slots=True)
class NoiseTerms:
    """What a policy promises of its noise; a window without noise has none of it.

    Attributes:
        epsilon_acc, delta_acc, delta_policy, sigma: decimals, as texts.
        relation: of neighbouring indexes, "replace" or "null-replace".
        rows_per_document: g, 1..1000.
        calibration: how sigma was chosen, for people.
        coalition_max: k_max.
    """

    epsilon_acc: str
    delta_acc: str
    delta_policy: str
    sigma: str
    relation: str
    rows_per_document: int
    calibration: str
    coalition_max: int

    @classmethod
    def read(cls, f: Fields, slots: int) -> "NoiseTerms":
        """Return the terms among a policy's members; MalformedPolicy.

        Args:
            f: the policy.
            slots: of the policy, the most accounts that can collude.
        """
        return cls(
            epsilon_acc=read_decimal(f, "epsilon_acc", Fraction(1000)),
            delta_acc=read_decimal(f, "delta_acc", Fraction(1, 10)),
            delta_policy=read_decimal(f, "delta_policy", Fraction(1, 10)),
            sigma=_sigma(f),
            relation=f.choice("relation", *FIXED_SIZE),
            rows_per_document=f.integer("rows_per_document", 1, 1000),
            calibration=f.text("calibration", 1, 500),
            coalition_max=f.integer("coalition_max", 1, slots),
        )


NOISE_MEMBERS: Final = tuple(NoiseTerms.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class RetrievalTerms:
    """What a policy says of indexes and requests.

    Attributes:
        metric: of the store whose order the scores repeat.
        largest_norm: decimal, the norm that is scaled to B with metric "inner-product", else None.
        public_columns: by rising name.
        filters: whether requests may carry one (``filter_grammar``).
        query_kinds: "text", "vector" or both, in this order.
        retry_seconds: within which an identical request is the same one, 0..3600.
        versions: whether an index may have later versions within the window.
    """

    metric: Metric
    largest_norm: str | None
    public_columns: tuple[PublicColumn, ...]
    filters: bool
    query_kinds: tuple[QueryKind, ...]
    retry_seconds: int
    versions: bool

    @classmethod
    def read(cls, f: Fields) -> "RetrievalTerms":
        """Return the terms among the members of a policy.

        Raises:
            MalformedPolicy: one of them ill-typed or out of range.
        """
        metric = cast("Metric", f.choice("metric", *METRICS))
        largest = None
        if metric == "inner-product":
            largest = read_decimal(f, "largest_norm", Fraction(10**9))
        else:
            f.constant("largest_norm", None)
        kinds = f.raw("query_kinds")
        if kinds not in (["text"], ["vector"], ["text", "vector"]):
            raise f.error("query_kinds", "not a list of kinds", 'of "text", "vector", rising')
        return cls(
            metric=metric,
            largest_norm=largest,
            public_columns=read_public_columns(f),
            filters=f.choice("filter_grammar", "empty", FILTER_GRAMMAR) == FILTER_GRAMMAR,
            query_kinds=tuple(kinds),
            retry_seconds=f.integer("retry_seconds", 0, 3600),
            versions=f.boolean("versions"),
        )


def _sigma(f: Fields) -> str:
    sigma = read_decimal(f, "sigma", Fraction(2**40))
    units = exact(sigma) * SQUARED_NORM
    if not LIMITS.sigma_units_min <= units <= LIMITS.sigma_units_max:
        raise f.error("sigma", "out of range", expected="16 <= sigma * 16129 <= 2^40")
    return sigma


def read_estimator(f: Fields) -> Estimator:
    """Return the terms of the coalition estimate among a policy\'s members; MalformedPolicy."""
    names = "theta tau_seconds sketch_bits seed hamming_threshold"
    e = Fields(f.raw("estimator"), names, MalformedPolicy, "estimator")
    bits = e.integer("sketch_bits", LIMITS.sketch_bits_min, LIMITS.sketch_bits_max)
    if bits % 8:
        raise e.error("sketch_bits", "not a multiple of 8")
    return Estimator(
        theta=read_decimal(e, "theta", below=1),
        tau_seconds=e.integer("tau_seconds", 1, 10**7),
        sketch_bits=bits,
        seed=e.hex("seed", 32),
        hamming_threshold=e.integer("hamming_threshold", 0, bits),
    )


def read_audit(f: Fields) -> AuditTerms:
    """Return the terms of the audit among a policy\'s members; MalformedPolicy."""
    names = "mode beta tenants submitters deadline_seconds"
    a = Fields(f.raw("audit"), names, MalformedPolicy, "audit")
    tenants = Fields(a.raw("tenants"), "eta minimum", MalformedPolicy, "audit.tenants")
    submitters = Fields(a.raw("submitters"), "by eta minimum", MalformedPolicy, "audit.submitters")
    return AuditTerms(
        mode=a.choice("mode", "A", "B"),
        beta=read_decimal(a, "beta", below=1),
        tenants=read_stratum(tenants),
        submitters=read_stratum(submitters),
        submitters_by=submitters.choice("by", "account", "tenant"),
        deadline_seconds=a.integer("deadline_seconds", 1, 10**7),
    )


def read_stratum(f: Fields) -> StratumTerms:
    """Return how a kind of strata is drawn, of its members ``eta`` and ``minimum``."""
    return StratumTerms(read_decimal(f, "eta", below=1), f.integer("minimum", 0, 10**6))


def read_keys(f: Fields, origin: str) -> PolicyKeys:
    """Return the keys among a policy's members.

    Args:
        f: the policy.
        origin: of the window's log, which the log key's name must be.

    Raises:
        MalformedPolicy: not keys, or one in two roles.
    """
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
    if len(set(keys.roles.values())) < len(keys.roles):
        raise f.error("keys", "one key in two roles", expected="different keys")
    return keys
