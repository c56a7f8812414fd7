"""The policy of a window (docs/spec/05-records.md §5.2): parsed strictly, digested.

Only the form is checked here. Whether sigma gives the promised privacy, and the threshold fits
theta, is the verifier's to say.
"""

from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, Self, cast

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.parameters import LIMITS, B
from ragaudit.ledger.errors import MalformedNote, MalformedPolicy, MalformedRecord
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.messages.beacon import MAX_ROUND, Known
from ragaudit.ledger.messages.generation_terms import GenerationTerms, KeywordVoting
from ragaudit.ledger.messages.identifiers import check_window, log_origin
from ragaudit.ledger.messages.kernel import (
    ANYTHING,
    EMBEDDED,
    OMITTED,
    Integer,
    Items,
    OrNull,
    ProviderName,
    Text,
    WindowName,
)
from ragaudit.ledger.messages.policy_terms import (
    DIRECTION,
    MAX_CHECKPOINTS,
    MAX_INSTANTS,
    MAX_SECONDS,
    NOISE_MEMBERS,
    TENANTS,
    AuditTerms,
    Beacon,
    CosignerTerms,
    Estimator,
    Flag,
    IsDemanded,
    Metric,
    NoiseTerms,
    OwnerTerms,
    PolicyKeys,
    PolicyMember,
    PreviousCheckpoint,
    QueryKind,
    RetrievalTerms,
    StratumTerms,
    SubmitterTerms,
    Tenants,
    exact,
)

__all__ = [
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

LARGE_B = 4095  # of windows without noise
MAX_WINDOW_SECONDS = 400 * 86_400
MAX_KEYS = 50_000_000  # slots times queries per account: the leaves of C_seed

_SAMPLER: Final[dict[str, object]] = {"id": "ragaudit/v1/dgs", "distance": "2^-100"}
_DAY: Final = 86_400


class Policy(PolicyMember, kind="policy", where=""):
    """A parsed policy; members as in the specification, decimals as their text.

    Attributes:
        start, end, activation_instants: Unix seconds.
        previous_checkpoint: text of the one that the window follows; None: it follows none.
        noise: None in an integrity window (``privacy`` "none"): nothing is added to scores, no
            epsilon is claimed, and the selection is the exact top K.
        norm_bound: B, 127 or, without noise only, 4095.
        tenants: by rising name, each with the key of its owner.
        activation_rounds: of the beacon, of each instant; they follow from the instants.
        beacon: whose rounds are mixed into activations and sample; None with beacon "none".
        account_index: whether the log ends with an account index (5.14).
        coalition_estimate: that of 7.5; None: that of 7.2.
        cosigners: whom else the checkpoints are shown to; None for nobody.
        epochs: whether the log may go on under later seed epochs (5.15).
        time_stamps: whether the audit fails without them; None: none are asked for.
        generation: of the generation channel; None in a window without one.
        owners: what owners of documents can check (5.16); None: nothing.
    """

    provider: ProviderName
    window: WindowName
    start: Annotated[int, Integer(1, MAX_SECONDS)]
    end: Annotated[int, Integer(2, MAX_SECONDS + MAX_WINDOW_SECONDS)]
    previous_checkpoint: PreviousCheckpoint
    privacy: Literal["gaussian", "none"]
    noise: Annotated[NoiseTerms | None, EMBEDDED]
    sampler: Annotated[Any, ANYTHING]
    retrieval: Annotated[RetrievalTerms, EMBEDDED]
    norm_bound: Annotated[int, Integer(B, LARGE_B)]
    dimension: Annotated[int, Integer(1, LIMITS.dimension)]
    top_k_max: Annotated[int, Integer(1, LIMITS.top_k)]
    queries_per_account: Annotated[int, Integer(1, 1_000_000)]
    slots: Annotated[int, Integer(1, 1_000_000)]
    tenants: Annotated[Tenants, TENANTS]
    activation_instants: Annotated[
        tuple[Annotated[int, Integer(1, MAX_SECONDS)], ...], Items(2, MAX_INSTANTS)
    ]
    activation_rounds: Annotated[
        tuple[Annotated[int, Integer(1, MAX_ROUND)] | None, ...], Items(2, MAX_INSTANTS)
    ]
    beacon: Beacon
    query_text_disclosure: Literal["sampled", "none"]
    embedder_tolerance: Annotated[int, Integer(0, 65_535)]
    estimator: Estimator
    proof_mode: Annotated[str, Known("on-demand")]
    audit: AuditTerms
    merge_delay_seconds: Annotated[int, Integer(1, _DAY)]
    clock_skew_seconds: Annotated[int, Integer(1, _DAY)]
    promise_life_seconds: Annotated[int, Integer(1, _DAY)]
    claim_margin_seconds: Annotated[int, Integer(1, _DAY)]
    release_seconds: Annotated[int, Integer(1, 10**7 - 1)]
    keys: PolicyKeys
    experiment_seed: Annotated[str, Text(1, 500)] | None
    account_index: Flag = False
    coalition_estimate: Annotated[str | None, OrNull(Known(DIRECTION)), OMITTED] = None
    cosigners: Annotated[CosignerTerms | None, OMITTED] = None
    epochs: Flag = False
    time_stamps: IsDemanded = None
    generation: Annotated[GenerationTerms | None, OMITTED] = None
    owners: Annotated[OwnerTerms | None, OMITTED] = None

    @property
    def by_direction(self) -> bool:
        """Whether the coalition estimate is that of 7.5, not of 7.2."""
        return self.coalition_estimate is not None

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

    @cached_property
    def canonical(self) -> bytes:
        """The document itself, which the digest names."""
        return canonical_json.dumps(super().to_json())

    def __hash__(self) -> int:
        return hash(self.canonical)

    def encode(self) -> bytes:
        """Return `canonical`."""
        return self.canonical

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON value."""
        return cast("dict[str, Any]", canonical_json.loads(self.canonical))

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the policy of canonical bytes: another spelling would have another digest.

        Raises:
            MalformedPolicy: not canonical, a member missing, unknown, ill-typed or out of range.
            UnsupportedError: a well-formed value that this code does not know.
        """
        found: Self = _of_bytes(data)
        return found

    @classmethod
    def read(cls, value: Any) -> Self:
        """Return the policy of a JSON value; raises as `parse`."""
        if isinstance(value, dict) and value.get("privacy") == "none":
            # A sigma beside "none" could be read as a promise: of nothing.
            for name in (*NOISE_MEMBERS, "experiment_seed"):
                if value.get(name) is not None:
                    raise MalformedPolicy("another value", where=name, expected="None")
        try:
            return super().read(value)
        except (MalformedNote, MalformedRecord) as error:
            raise MalformedPolicy(error.what, where=error.where, expected=error.expected) from error

    def _check(self) -> None:
        self._check_supported()
        self._check_times()
        if self.norm_bound != B and (self.noised or self.norm_bound != LARGE_B):
            raise MalformedError("another value", where="norm_bound", expected=str(B))
        _check_range(
            "queries_per_account",
            self.queries_per_account,
            1,
            min(1_000_000, MAX_KEYS // self.slots),
        )
        if self.noised:
            _check_range("coalition_max", self.noise_terms.coalition_max, 1, self.slots)
        self._check_keys()
        if self.previous_checkpoint is not None:
            origin = parse_checkpoint(self.previous_checkpoint.encode()).checkpoint.origin
            before = origin.removeprefix(f"{self.provider}/ragaudit/")
            if before in (origin, self.window):  # another provider's, or this window itself
                what = "not of another window of this provider"
                raise MalformedError(what, where="previous_checkpoint")
            check_window(before)

    def _check_supported(self) -> None:
        if self.noise is None and self.privacy == "gaussian":
            raise MalformedError("null", where="epsilon_acc", expected="a decimal")
        supported = _SAMPLER if self.noised else None
        if self.sampler != supported:
            raise UnsupportedError("not supported", where="sampler", expected=str(supported))
        if self.by_direction and not self.noised:  # without noise there is none
            raise UnsupportedError("not supported", where="coalition_estimate")
        if self.generation is None:
            return
        if not self.noised or self.retrieval.versions or "text" not in self.retrieval.query_kinds:
            # Without noise no keys are committed to that coins could come from.
            raise UnsupportedError(
                "no generation channel in such a window",
                where="generation",
                expected='privacy "gaussian", one version of each index, and texts as queries',
            )
        # A divergence of g rows at once is none of g times one row.
        if isinstance(self.generation.answerer, KeywordVoting) and self.rows_per_document != 1:
            what = "dp-ksa with documents of several rows"
            raise UnsupportedError(what, where="rows_per_document", expected="1")

    def _check_times(self) -> None:
        start, end, instants = self.start, self.end, self.activation_instants
        _check_range("end", end, start + 1, start + MAX_WINDOW_SECONDS)
        # A chain that has not begun: nobody knows whether it will.
        if self.beacon is not None and self.beacon.chain.genesis > start:
            what = "after the window's start"
            raise MalformedError(what, where="beacon.genesis", expected="a chain that runs")
        if any(a >= b for a, b in pairwise(instants)):
            raise MalformedError("not rising", where="activation_instants")
        # The last instant comes after the end: its value, the sample's seed, is known to nobody
        # before.
        if not (instants[0] <= start and instants[-2] < end <= instants[-1]):
            expected = "t_1 <= start, t_(A-1) < end <= t_A"
            raise MalformedError("do not fit", where="activation_instants", expected=expected)
        rounds = tuple(map(self.round_of, range(1, len(instants) + 1)))
        # Stated for who reads it; a later one could be chosen by what it does to noise and sample.
        if self.activation_rounds != rounds:
            what = "not those that instants and delay fix"
            expected = f"{rounds[0]}, .., {rounds[-1]}"
            raise MalformedError(what, where="activation_rounds", expected=expected)
        # At least twice the spacing of checkpoints, so that each covers what came since the last.
        least = max(1, -(-4 * (instants[-1] - start) // MAX_CHECKPOINTS))
        _check_range("merge_delay_seconds", self.merge_delay_seconds, least, _DAY)
        most = min(_DAY, end - start - 1)
        _check_range("claim_margin_seconds", self.claim_margin_seconds, 1, most)
        _check_range("release_seconds", self.release_seconds, 1, self.audit.deadline_seconds - 1)

    def _check_keys(self) -> None:
        self.keys.check_origin(self.origin)
        for number, key in enumerate(self.tenants.values()):
            where = f"tenants[{number}]"
            if key is not None and self.owners is None:
                raise UnsupportedError("owners' keys", where=where, expected="owner_key null")
            if key is not None and (role := self.keys.role(key)):
                raise MalformedError(
                    f"the key of keys.{role}",
                    where=f"{where}.owner_key",
                    expected="a key of the owner's own",
                )
        cosigners = () if self.cosigners is None else self.cosigners.trust.keys
        if any(key.public in self.keys.roles.values() for key in cosigners):
            expected = "third parties' keys"
            raise MalformedError("a key of the policy", where="cosigners.trust", expected=expected)


@lru_cache(maxsize=32)  # a service reads the policies of its windows at nearly every request
def _of_bytes(data: bytes) -> Any:
    policy = super(Policy, Policy).parse(data)
    vars(policy)["canonical"] = data  # they are read as nothing else
    return policy


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise MalformedError("not such an integer", where=name, expected=f"{low}..{high}")
