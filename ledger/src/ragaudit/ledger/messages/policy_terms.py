"""The terms of a policy that stand together (docs/spec/05-records.md §5.2), each read strictly.

The rounds of the beacon follow from the instants, so nobody chooses one: a policy that names others
is none. Cosigners beside the verifier say that they saw the same log, time-stamping authorities
when it existed; nobody of the audit is one. What a missing word of theirs means is fixed before the
window: the audit fails, or the verdict says that it is missing.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.parameters import LIMITS, SQUARED_NORM
from ragaudit.encoding.relations import FIXED_SIZE
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import DECIMAL, is_decimal
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, MAX_NOTE_BYTES
from ragaudit.ledger.log.tlog_policy import MAX_POLICY_BYTES, NO_QUORUM, TrustPolicy
from ragaudit.ledger.messages.beacon import BeaconChain, Known
from ragaudit.ledger.messages.columns import MAX_COLUMNS, PublicColumn
from ragaudit.ledger.messages.kernel import (
    BOOLEAN,
    EMBEDDED,
    OMITTED,
    Choice,
    Converted,
    Digest,
    Form,
    Integer,
    Items,
    KeyInHex,
    Message,
    Nested,
    OrNull,
    TenantName,
    Text,
    Vkey,
)

Metric: TypeAlias = Literal["cosine", "inner-product", "l2"]
QueryKind: TypeAlias = Literal["text", "vector"]

FILTER_GRAMMAR: Final = "ragaudit/v1/filter"
DIRECTION: Final = "ragaudit/v1/direction"
"""The coalition estimate of docs/spec/07-coalition.md §7.5."""
LONGEST_DECIMAL: Final = 22
MAX_SLOTS: Final = 1_000_000
MAX_TENANTS: Final = 10_000
DEFAULT_RETRY_SECONDS: Final = 60


class PolicyMember(Message):
    """A member of a policy, or members that stand together."""

    ERROR: ClassVar[type[MalformedError]] = MalformedPolicy


def decimals(most: Fraction | None = None, below: int = 1) -> Text:
    """Return the form of a decimal above 0, at most ``most`` or, without one, below ``below``."""
    said = f"below {below}" if most is None else f"at most {most}"

    def check(text: str) -> None:
        if not is_decimal(text):
            raise MalformedError("not a decimal", expected=DECIMAL)
        value = Fraction(text)
        if value <= 0 or not (value < below if most is None else value <= most):
            raise MalformedError("out of range", expected=f"above 0, {said}")

    return Text(1, LONGEST_DECIMAL, check, f"decimal above 0, {said}")


Share: TypeAlias = Annotated[str, decimals(below=1)]


class Estimator(PolicyMember):
    """Parameters of the coalition estimate.

    Attributes:
        theta: cosine from which two queries count as alike, a decimal below 1.
        tau_seconds: within which alike queries are linked.
        sketch_bits, seed: b, a multiple of 8, and 32 bytes, of the sketches.
        hamming_threshold: 0..b.
    """

    theta: Share
    tau_seconds: Annotated[int, Integer(1, 10**7)]
    sketch_bits: Annotated[int, Integer(LIMITS.sketch_bits_min, LIMITS.sketch_bits_max)]
    seed: Digest
    hamming_threshold: Annotated[int, Integer(0, LIMITS.sketch_bits_max)]

    def _check(self) -> None:
        if self.sketch_bits % 8:
            raise MalformedError("not a multiple of 8", where="sketch_bits")
        if self.hamming_threshold > self.sketch_bits:
            expected = f"0..{self.sketch_bits}"
            raise MalformedError("out of range", where="hamming_threshold", expected=expected)


class StratumTerms(PolicyMember):
    """Of one kind of strata: ``eta``, the largest probability to miss, and the least sample."""

    eta: Share
    minimum: Annotated[int, Integer(0, 10**6)]


class SubmitterTerms(StratumTerms):
    """Of the strata of submitted receipts; ``by``: one per "account" or one per "tenant"."""

    by: Literal["account", "tenant"]


class AuditTerms(PolicyMember):
    """Mode A (every record) or B (samples), how each kind is drawn, and the prover's deadline.

    Attributes:
        beta: the share of bad records that a sample is to find.
        tenants: of the strata that hold all records of a tenant.
        submitters: of the strata that hold the records whose receipts were submitted.
    """

    mode: Literal["A", "B"]
    beta: Share
    tenants: StratumTerms
    submitters: SubmitterTerms
    deadline_seconds: Annotated[int, Integer(1, 10**7)]

    @property
    def submitters_by(self) -> str:
        """Whether the strata of submitters are one per "account" or one per "tenant"."""
        return self.submitters.by


class PolicyKeys(PolicyMember):
    """The public keys of a window, pairwise different; ``arbiter`` None: it has none."""

    arbiter: KeyInHex | None
    log: Vkey
    provider: KeyInHex
    cosigner: Vkey
    verifier: KeyInHex
    verdict: KeyInHex

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

    def check_origin(self, origin: str) -> None:
        """Check that the log's key is named as the origin of the window's log; MalformedPolicy."""
        if self.log.name != origin:
            raise MalformedPolicy("not the log's key", where="keys.log", expected=origin)

    def _check(self) -> None:
        if self.log.algorithm != ED25519:
            raise MalformedError("not a log's key", where="log", expected="type 0x01")
        if self.cosigner.algorithm != COSIGNATURE_V1:
            raise MalformedError("not a cosigner's key", where="cosigner", expected="type 0x04")
        # One key in two roles would let one party answer for the other.
        if len(set(self.roles.values())) < len(self.roles):
            raise MalformedError("one key in two roles", expected="different keys")


def exact(text: str) -> Fraction:
    """Return the exact value of a policy decimal; MalformedPolicy for any other text."""
    if not is_decimal(text):
        raise MalformedPolicy("not a decimal", expected=DECIMAL)
    return Fraction(text)


class NoiseTerms(PolicyMember):
    """What a policy promises of its noise; a window without noise has none of it.

    Attributes:
        epsilon_acc, delta_acc, delta_policy, sigma: decimals, as texts.
        relation: of neighbouring indexes, "replace" or "null-replace".
        rows_per_document: g, 1..1000.
        calibration: how sigma was chosen, for people.
        coalition_max: k_max.
    """

    epsilon_acc: Annotated[str, decimals(Fraction(1000))]
    delta_acc: Annotated[str, decimals(Fraction(1, 10))]
    delta_policy: Annotated[str, decimals(Fraction(1, 10))]
    sigma: Annotated[str, decimals(Fraction(2**40))]
    relation: Annotated[str, Choice(*FIXED_SIZE)]
    rows_per_document: Annotated[int, Integer(1, 1000)]
    calibration: Annotated[str, Text(1, 500)]
    coalition_max: Annotated[int, Integer(1, MAX_SLOTS)]

    def _check(self) -> None:
        units = exact(self.sigma) * SQUARED_NORM
        if not LIMITS.sigma_units_min <= units <= LIMITS.sigma_units_max:
            expected = "16 <= sigma * 16129 <= 2^40"
            raise MalformedError("out of range", where="sigma", expected=expected)


NOISE_MEMBERS: Final = tuple(NoiseTerms.FORMS)


class RetrievalTerms(PolicyMember):
    """What a policy says of indexes and requests.

    Attributes:
        metric: of the store whose order the scores repeat.
        largest_norm: decimal, the norm that is scaled to B with metric "inner-product", else None.
        public_columns: by rising name.
        filter_grammar: of the filters that requests may carry, or "empty".
        query_kinds: "text", "vector" or both, in this order.
        retry_seconds: within which an identical request is the same one, 0..3600.
        versions: whether an index may have later versions within the window.
    """

    metric: Metric
    largest_norm: Annotated[str, decimals(Fraction(10**9))] | None
    public_columns: Annotated[tuple[PublicColumn, ...], Items(0, MAX_COLUMNS)]
    filter_grammar: Annotated[str, Known("empty", FILTER_GRAMMAR)]
    query_kinds: Annotated[tuple[QueryKind, ...], Items(1, 2)]
    retry_seconds: Annotated[int, Integer(0, 3600)]
    versions: bool

    @property
    def filters(self) -> bool:
        """Whether requests may carry a filter."""
        return self.filter_grammar == FILTER_GRAMMAR

    def _check(self) -> None:
        scaled = self.metric == "inner-product"
        if (self.largest_norm is not None) != scaled:
            expected = "a decimal" if scaled else "null"
            raise MalformedError("another value", where="largest_norm", expected=expected)
        names = [column.name.encode() for column in self.public_columns]
        if names != sorted(set(names)):
            raise MalformedError("names not rising and distinct", where="public_columns")
        if list(self.query_kinds) != sorted(set(self.query_kinds)):
            expected = 'of "text", "vector", rising'
            raise MalformedError("not a list of kinds", where="query_kinds", expected=expected)


MAX_SECONDS: Final = 2**40
MAX_INSTANTS: Final = 10_000
MAX_CHECKPOINTS: Final = 400_000  # that a verifier cosigns of one window
MAX_DELAY: Final = 3600  # seconds
HAND_IN_SECONDS: Final = 60
NO_BEACON: Final[dict[str, object]] = {"kind": "none"}


class BeaconTerms(PolicyMember):
    """The beacon of a policy, its member ``beacon``.

    Attributes:
        chain: whose rounds are mixed in.
        delay_seconds: delta: a round is due at least as long after its instant. What was cosigned
            before an instant is older than the round by any clock that is wrong by less.
    """

    chain: Annotated[BeaconChain, EMBEDDED]
    delay_seconds: Annotated[int, Integer(0, MAX_DELAY)]
    kind: Literal["drand"] = "drand"

    def round_at(self, instant: int) -> int:
        """Return R of an instant: the first round that is due delta after it, or later.

        Args:
            instant: Unix seconds.
        """
        return self.chain.first_from(instant + self.delay_seconds)


class _BeaconForm(Form):
    """The terms of the beacon; null for the beacon "none"."""

    def __init__(self) -> None:
        either = [{"const": NO_BEACON}, Nested(BeaconTerms).schema]
        super().__init__("", lambda terms: terms.to_json() if terms else NO_BEACON, anyOf=either)

    def read(self, value: Any) -> BeaconTerms | None:
        if value == NO_BEACON:
            return None
        if not isinstance(value, dict) or value.get("kind") != "drand":
            raise UnsupportedError("not supported", expected=f'{NO_BEACON} or kind "drand"')
        return BeaconTerms.read(value)


Beacon: TypeAlias = Annotated[BeaconTerms | None, _BeaconForm()]


def time_to_hand_in(merge_delay: int, skew: int) -> int:
    """Return what an account needs from the end to the sampling instant, for its last receipts.

    That is until it knows that an answer is in no log, and a minute to say so.

    Args:
        merge_delay, skew: of the policy, seconds.
    """
    return merge_delay + skew + HAND_IN_SECONDS


def _check_note(text: str) -> None:
    parse_checkpoint(text.encode())


PreviousCheckpoint: TypeAlias = (
    Annotated[str, Text(1, MAX_NOTE_BYTES, _check_note, "checkpoint (6.4)")] | None
)


class RowTerms(PolicyMember):
    """How the auditor samples rows (9.11).

    Attributes:
        beta: the share of bad rows that a sample is to find, a decimal below 1.
        sample: how each tenant's rows are drawn.
    """

    beta: Share
    sample: Annotated[StratumTerms, EMBEDDED]


class OwnerTerms(PolicyMember):
    """What owners of documents can check; ``rows`` None: the auditor samples none."""

    rows: RowTerms | None


class _Tenant(PolicyMember):
    id: TenantName
    owner_key: KeyInHex | None


Tenants: TypeAlias = Mapping[str, PublicKey | None]
"""The names of a policy's tenants, rising, each with the key of its owner."""


def _read_tenants(tenants: tuple[_Tenant, ...]) -> Tenants:
    names = [tenant.id for tenant in tenants]
    if names != sorted(set(names)):
        raise MalformedError("ids not rising and distinct")
    return {tenant.id: tenant.owner_key for tenant in tenants}


TENANTS: Final = Converted(
    Items(1, MAX_TENANTS, Nested(_Tenant)),
    _read_tenants,
    lambda tenants: [_Tenant(*each).to_json() for each in tenants.items()],
)


class Demand(PolicyMember):
    """Whether the audit fails without what third parties say; otherwise the verdict says so."""

    demand: Literal["required", "reported"]

    @property
    def required(self) -> bool:
        """Whether the audit fails without it."""
        return self.demand == "required"


def _read_trust(text: str) -> TrustPolicy:
    try:
        trust = TrustPolicy.parse(text.encode())
    except MalformedError as error:
        raise MalformedError(f"{error.where}: {error.what}", expected=error.expected) from error
    # One spelling, so that its digest names it; where cosigners are asked is the provider's.
    if trust.named().encode() != text.encode():
        raise MalformedError("not canonical", expected="no logs, URLs, comments")
    if trust.quorum == NO_QUORUM:
        raise MalformedError("no quorum", expected="the name of a witness or group")
    return trust


_TRUST: Final = Converted(
    Text(1, MAX_POLICY_BYTES), _read_trust, lambda trust: trust.encode().decode(), "trust policy"
)


def _written_demand(required: bool | None) -> dict[str, Any] | None:
    return None if required is None else Demand("required" if required else "reported").to_json()


IsDemanded: TypeAlias = Annotated[
    bool | None,
    Converted(
        OrNull(Nested(Demand)), lambda found: found and found.required, _written_demand, "demand"
    ),
    OMITTED,
]
"""Whether the audit fails without it; None: nobody asks."""


def _read_flag(value: bool | None) -> bool:
    if value is False:
        raise MalformedError("another value", expected="True")
    return bool(value)


Flag: TypeAlias = Annotated[
    bool, Converted(OrNull(BOOLEAN), _read_flag, lambda value: value or None, "true"), OMITTED
]
"""Left out where it is not true."""


class CosignerTerms(Demand):
    """Further cosigners and their quorum, the member ``cosigners``.

    Attributes:
        trust: who they are; without logs and URLs.
    """

    trust: Annotated[TrustPolicy, _TRUST]

    @property
    def least(self) -> int:
        """How many cosigners at least sign what passes the audit; 0 where it only reports them."""
        return self.trust.least if self.required else 0
