"""The terms of a policy that stand together (docs/spec/05-records.md §5.2), each read strictly.

The rounds of the beacon follow from the instants, so nobody chooses one: a policy that names others
is none. Cosigners beside the verifier say that they saw the same log, time-stamping authorities
when it existed; nobody of the audit is one. What a missing word of theirs means is fixed before the
window: the audit fails, or the verdict says that it is missing.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, Literal, Self, TypeAlias, cast

from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.parameters import LIMITS, SQUARED_NORM
from ragaudit.encoding.relations import FIXED_SIZE
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import DECIMAL, is_decimal
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.notes import COSIGNATURE_V1, ED25519, MAX_NOTE_BYTES, VerifierKey
from ragaudit.ledger.log.tlog_policy import MAX_POLICY_BYTES, NO_QUORUM, TrustPolicy
from ragaudit.ledger.messages.beacon import CHAIN_MEMBERS, BeaconChain
from ragaudit.ledger.messages.columns import PublicColumn, read_public_columns
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.identifiers import check_tenant, check_window

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


MAX_SECONDS: Final = 2**40
MAX_INSTANTS: Final = 10_000
MAX_CHECKPOINTS: Final = 400_000  # that a verifier cosigns of one window
MAX_DELAY: Final = 3600  # seconds
HAND_IN_SECONDS: Final = 60
NO_BEACON: Final[dict[str, object]] = {"kind": "none"}


@dataclass(frozen=True, slots=True)
class BeaconTerms:
    """The beacon of a policy, its member ``beacon``.

    Attributes:
        chain: whose rounds are mixed in.
        delay_seconds: delta: a round is due at least as long after its instant. What was cosigned
            before an instant is older than the round by any clock that is wrong by less.
    """

    chain: BeaconChain
    delay_seconds: int

    def round_at(self, instant: int) -> int:
        """Return R of an instant: the first round that is due delta after it, or later.

        Args:
            instant: Unix seconds.
        """
        return self.chain.first_from(instant + self.delay_seconds)

    def to_json(self) -> dict[str, Any]:
        """Return the member."""
        return {"kind": "drand", **self.chain.to_json(), "delay_seconds": self.delay_seconds}

    @classmethod
    def read(cls, f: Fields, start: int) -> Self | None:
        """Return the terms among a policy's members; None for the beacon "none".

        Args:
            f: the policy.
            start: of the window, Unix seconds.

        Raises:
            MalformedPolicy: not such terms.
            UnsupportedError: another kind of beacon.
        """
        value = f.raw("beacon")
        if value == NO_BEACON:
            return None
        if not isinstance(value, dict) or value.get("kind") != "drand":
            expected = f'{NO_BEACON} or kind "drand"'
            raise UnsupportedError("not supported", where="beacon", expected=expected)
        b = Fields(value, f"kind {CHAIN_MEMBERS} delay_seconds", MalformedPolicy, "beacon")
        chain = BeaconChain.read(b)
        # A chain that has not begun: nobody knows whether it will.
        if chain.genesis > start:
            raise b.error("genesis", "after the window's start", "a chain that runs")
        return cls(chain, b.integer("delay_seconds", 0, MAX_DELAY))


def read_instants(f: Fields, start: int, end: int, beacon: BeaconTerms | None) -> tuple[int, ...]:
    """Return the activation instants of a policy, the sampling instant last; Unix seconds.

    Args:
        f: the policy.
        start, end: of the window, Unix seconds.
        beacon: of the policy, which with the instants fixes the rounds.

    Raises:
        MalformedPolicy: not such instants, or not their rounds.
    """
    instants = f.integers("activation_instants", (2, MAX_INSTANTS), 1, MAX_SECONDS)
    if any(a >= b for a, b in pairwise(instants)):
        raise f.error("activation_instants", "not rising")
    # The last instant comes after the end: its value, the sample's seed, is known to nobody before.
    if not (instants[0] <= start and instants[-2] < end <= instants[-1]):
        raise f.error("activation_instants", "do not fit", "t_1 <= start, t_(A-1) < end <= t_A")
    if beacon is None:
        if f.raw("activation_rounds") != [None] * len(instants):
            raise f.error("activation_rounds", "not null each", f"{len(instants)} times null")
        return instants
    rounds = [beacon.round_at(instant) for instant in instants]
    # Stated for who reads it; a later round could be chosen by what it does to noise and sample.
    if f.raw("activation_rounds") != rounds:
        raise f.error(
            "activation_rounds",
            "not those that instants and delay fix",
            f"{rounds[0]}, .., {rounds[-1]}",
        )
    return instants


def time_to_hand_in(merge_delay: int, skew: int) -> int:
    """Return what an account needs from the end to the sampling instant, for its last receipts.

    That is until it knows that an answer is in no log, and a minute to say so.

    Args:
        merge_delay, skew: of the policy, seconds.
    """
    return merge_delay + skew + HAND_IN_SECONDS


def read_merge_delay(f: Fields, seconds: int) -> int:
    """Return the merge delay of a policy.

    Args:
        f: the policy.
        seconds: from the window's start to its sampling instant.

    Raises:
        MalformedPolicy: not such a delay, or too short for the window.
    """
    # At least twice the spacing of checkpoints, so that each covers what came since the last.
    return f.integer("merge_delay_seconds", max(1, -(-4 * seconds // MAX_CHECKPOINTS)), 86_400)


def read_previous_checkpoint(f: Fields, provider: str, window: str) -> str | None:
    """Return the text of the checkpoint that a policy's window follows; None if it follows none.

    Args:
        f: the policy.
        provider, window: of the policy.

    Raises:
        MalformedPolicy, MalformedNote: not a checkpoint of another window of this provider.
    """
    if f.raw("previous_checkpoint") is None:
        return None
    note = f.text("previous_checkpoint", 1, MAX_NOTE_BYTES)
    origin = parse_checkpoint(note.encode()).checkpoint.origin
    before = origin.removeprefix(f"{provider}/ragaudit/")
    if before in (origin, window):  # another provider's, or this window itself
        raise f.error("previous_checkpoint", "not of another window of this provider")
    check_window(before)
    return note


@dataclass(frozen=True, slots=True)
class RowTerms:
    """How the auditor samples rows (9.11).

    Attributes:
        beta: the share of bad rows that a sample is to find, a decimal below 1.
        sample: how each tenant's rows are drawn.
    """

    beta: str
    sample: StratumTerms

    def to_json(self) -> dict[str, Any]:
        """Return the member ``rows``."""
        return {"beta": self.beta, "eta": self.sample.eta, "minimum": self.sample.minimum}


@dataclass(frozen=True, slots=True)
class OwnerTerms:
    """The member ``owners``, and the owners' keys beside the tenants.

    Attributes:
        rows: None: the auditor samples none.
        keys: tenant and key of its owner, of the tenants that have one.
    """

    rows: RowTerms | None
    keys: tuple[tuple[str, PublicKey], ...] = field(default=())

    def key(self, tenant: str) -> PublicKey | None:
        """Return the key of a tenant's owner; None if the policy names none."""
        return dict(self.keys).get(tenant)


@dataclass(frozen=True, slots=True)
class Tenants:
    """The member ``tenants``: names, rising, and the keys of some of their owners."""

    names: tuple[str, ...]
    keys: tuple[tuple[str, PublicKey], ...]

    @classmethod
    def read(cls, f: Fields, keys: PolicyKeys) -> Self:
        """Return the tenants among a policy's members.

        Args:
            f: the policy; without ``owners`` no tenant has a key.
            keys: of the policy, none of which is an owner's.

        Raises:
            MalformedPolicy: names that do not rise, or a key of the policy.
            UnsupportedError: an owner's key in a policy without ``owners``.
        """
        names, owners = [], []
        for where, item in f.objects("tenants", 1, 1000):
            tenant = Fields(item, "id owner_key", MalformedPolicy, where)
            names.append(check_tenant(tenant.text("id", 1, 64)))
            if tenant.raw("owner_key") is None:
                continue
            if "owners" not in f.value:
                raise UnsupportedError("owners' keys", where=where, expected="owner_key null")
            key = tenant.public_key("owner_key")
            if role := keys.role(key):
                expected = "a key of the owner's own"
                raise tenant.error("owner_key", f"the key of keys.{role}", expected)
            owners.append((names[-1], key))
        if names != sorted(set(names)):
            raise f.error("tenants", "ids not rising and distinct")
        return cls(tuple(names), tuple(owners))

    def owned(self, f: Fields) -> OwnerTerms | None:
        """Return the terms of the member ``owners``; None in a policy without it.

        Args:
            f: the policy.

        Raises:
            MalformedPolicy: not such a member.
        """
        if "owners" not in f.value:
            return None
        owners = Fields(f.raw("owners"), "rows", MalformedPolicy, "owners")
        if owners.raw("rows") is None:
            return OwnerTerms(None, self.keys)
        r = Fields(owners.raw("rows"), "beta eta minimum", MalformedPolicy, "owners.rows")
        return OwnerTerms(RowTerms(read_decimal(r, "beta", below=1), read_stratum(r)), self.keys)


REQUIRED: Final = "required"
REPORTED: Final = "reported"


def read_time_stamps(f: Fields) -> bool:
    """Return whether the audit fails without time stamps, of the policy's member ``time_stamps``.

    Args:
        f: the policy, with the member.

    Raises:
        MalformedPolicy: not such a member.
    """
    t = Fields(f.raw("time_stamps"), "demand", MalformedPolicy, "time_stamps")
    return t.choice("demand", REQUIRED, REPORTED) == REQUIRED


@dataclass(frozen=True, slots=True)
class CosignerTerms:
    """Further cosigners and their quorum, the member ``cosigners``.

    Attributes:
        required: whether the audit fails without the quorum; otherwise the verdict says so.
        trust: who they are; without logs and URLs.
    """

    required: bool
    trust: TrustPolicy

    @property
    def least(self) -> int:
        """How many cosigners at least sign what passes the audit; 0 where it only reports them."""
        return self.trust.least if self.required else 0

    def to_json(self) -> dict[str, Any]:
        """Return the member."""
        demand = REQUIRED if self.required else REPORTED
        return {"demand": demand, "trust": self.trust.encode().decode()}

    @classmethod
    def read(cls, f: Fields, keys: PolicyKeys) -> Self:
        """Return the terms among a policy's members.

        Args:
            f: the policy, with the member.
            keys: of the policy, none of which is a third party's.

        Raises:
            MalformedPolicy: not such terms, or a trust policy that asks for nothing.
        """
        c = Fields(f.raw("cosigners"), "demand trust", MalformedPolicy, "cosigners")
        text = c.text("trust", 1, MAX_POLICY_BYTES).encode()
        try:
            trust = TrustPolicy.parse(text)
        except MalformedError as error:
            raise c.error("trust", f"{error.where}: {error.what}", error.expected) from error
        # One spelling, so that its digest names it; where cosigners are asked is the provider's.
        if trust.named().encode() != text:
            raise c.error("trust", "not canonical", "no logs, URLs, comments")
        if trust.quorum == NO_QUORUM:
            raise c.error("trust", "no quorum", "the name of a witness or group")
        if any(key.public in keys.roles.values() for key in trust.keys):
            raise c.error("trust", "a key of the policy", "third parties' keys")
        return cls(c.choice("demand", REQUIRED, REPORTED) == REQUIRED, trust)
