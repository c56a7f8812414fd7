"""Facts: values derived from the evidence once, each owned by the check that vouches for it.

:class:`Inputs` gives access to the items and to what else a run judges with; every missing item
has an owner too (docs/spec/09-audit.md §9.6).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, Generic, Literal, TypeVar, overload

from ragaudit.circuits.selection import ColumnArrays
from ragaudit.encoding.errors import InternalError, MalformedError, RagauditError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.messages import items
from ragaudit.ledger.messages.commitments import IndexCommitment
from ragaudit.ledger.messages.evidence import EvidenceList
from ragaudit.privacy.accounting.generation import ChannelCosts
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.models import CommittedEmbedder, OwnGenerator

Part = Literal["public", "all"]
Progress = Callable[[str, int, int], None]
T = TypeVar("T")
M = TypeVar("M")

CONFIDENTIAL_PART: Final = "confidential part"
"""What a check names as missing when only the public part of the evidence is at hand."""

STAMP_LIBRARY: Final = "library for time stamps"
"""What check 24 names as missing where `ragaudit-ledger[timestamps]` is not installed."""


class MissingInput(Exception):
    """An input is missing or unusable.

    Attributes:
        owner: id of the check that says so, or CONFIDENTIAL_PART.
        reason: for people.
    """

    def __init__(self, owner: str, reason: str) -> None:
        super().__init__(owner, reason)
        self.owner = owner
        self.reason = reason


class Fact(Generic[T]):
    """A lazily computed attribute that turns refusals into :class:`MissingInput` of its owner.

    The value, or the reason why there is none, is kept.
    """

    def __init__(self, owner: str, compute: Callable[[Any], T]) -> None:
        self._owner = owner
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "Fact[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> "T | Fact[T]":
        if instance is None:
            return self
        known: dict[str, Any] = instance.__dict__.setdefault("_known", {})
        if self._name not in known:
            # The reason is kept like a value: many checks ask, and all must be told the same.
            known[self._name] = known_or_missing(self._owner, lambda: self._compute(instance))
        value: T = demand(known[self._name])
        # Where it is found from now on: a check may ask a million times.
        instance.__dict__[self._name] = value
        return value


def fact(owner: str) -> Callable[[Callable[[Any], T]], Fact[T]]:
    """Return a decorator that makes a method a fact.

    Args:
        owner: id of the check that vouches for it, and says FAIL where it cannot be had.
    """
    return lambda compute: Fact(owner, compute)


def known_or_missing(owner: str, compute: Callable[[], T], what: str = "") -> "T | MissingInput":
    """Return what ``compute`` gives, or why it gives nothing: what :func:`demand` takes.

    Args:
        owner: id of the check that owns a refusal; of a missing input, its own owner stays, so
            that one defect is never laid to two checks.
        what: was computed, for the reason.
    """
    try:
        return compute()
    except MissingInput as missing:
        return missing
    except InternalError:
        # A fault of this software accuses nobody: it ends the run without a verdict.
        raise
    except RagauditError as error:
        return MissingInput(owner, f"{what}: {error}" if what else str(error))


def demand(known: "T | MissingInput") -> T:
    """Return a known value.

    Args:
        known: as :func:`known_or_missing` returned it.

    Raises:
        MissingInput: it is none; a fresh exception, as the same one is asked for by many checks.
    """
    if isinstance(known, MissingInput):
        raise MissingInput(known.owner, known.reason)
    return known


@dataclass(slots=True)
class Stated:
    """Numbers that checks find and the verdict states beside the results; None until found.

    Attributes:
        estimated: accounts of the largest group that looks alike, of check 20.
        disputes_open: disputes that nobody judged, of check 15.
        epsilon: the table of check 21.
        quorum: of the further cosigners, of check 23.
        time_stamps: of opening and final checkpoint, of check 24.
        beacon: chain and rounds, of check 25.
        generation: what the generation channel costs, of check 26.
        listed: how many documents the indexes of each tenant give, of check 31.
    """

    estimated: int | None = None
    disputes_open: int | None = None
    epsilon: EpsilonTable | None = None
    quorum: Mapping[str, Any] | None = None
    time_stamps: Mapping[str, Any] | None = None
    beacon: Mapping[str, Any] | None = None
    generation: ChannelCosts | None = None
    listed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pins:
    """Keys that the verifier knows from elsewhere; None where only the policy names them."""

    provider: PublicKey | None = None
    cosigner: VerifierKey | None = None
    verifier: PublicKey | None = None
    verdict: PublicKey | None = None


class Interrupted(Exception):
    """The progress callback raised; carries what it raised past the checks."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class Inputs:
    """The evidence of one window, and what it is judged with.

    Args:
        pins: keys known from elsewhere.
        embedder: the committed embedder, where it is at hand.
        generator: the committed generator, likewise.
        part: "public" when only the public items are at hand.
        now: the verifier's clock in Unix milliseconds where the opening is checked; None
            afterwards, when the countersignature says when that was.
        only: leaf indices of the sampled records whose responses are looked at; None for all.
        progress: called with (check id, done, total).
    """

    def __init__(
        self,
        evidence: Evidence,
        *,
        engine: Engine,
        pins: Pins,
        embedder: CommittedEmbedder | None = None,
        generator: OwnGenerator | None = None,
        part: Part = "all",
        now: int | None = None,
        only: frozenset[int] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.evidence = evidence
        self.engine = engine
        self.pins = pins
        self.embedder = embedder
        self.generator = generator
        self.part = part
        self.now = now
        self.only = only
        self.stated = Stated()
        self._progress = progress
        self._indices: dict[tuple[str, int], IndexCommitment | MissingInput] = {}
        self._accepted: dict[tuple[str, int], IndexCommitment | MissingInput] = {}
        self._columns: dict[tuple[str, int], ColumnArrays] = {}

    def progress(self, step: str, done: int, total: int) -> None:
        """Report where a long check stands.

        Args:
            step: id of the check.
            done: parts that are done, 0..total.
            total: parts; 0 where the check has not counted them.

        Raises:
            Interrupted: the caller's function raised.
        """
        if self._progress is None:
            return
        try:
            self._progress(step, done, total)
        except BaseException as error:
            # Or a check would take what the caller raised to stop the run for a finding.
            raise Interrupted(error) from error

    def item(self, name: str, owner: str) -> bytes:
        """Return the bytes of an item.

        Args:
            name: of spec 10.1.
            owner: id of the check that says so where the item is missing.

        Raises:
            MissingInput: there is no such item; of a confidential one where only the public part
                is at hand, CONFIDENTIAL_PART is the owner.
        """
        self._demand_item(name, owner)
        return self.evidence[name]

    def open_item(self, name: str, owner: str) -> BinaryIO:
        """Return an item as a file, which the caller closes: one that is not read as a whole.

        Args:
            name, owner: as for :meth:`item`.

        Raises:
            MissingInput: as for :meth:`item`.
        """
        self._demand_item(name, owner)
        return self.evidence.open(name)

    def _demand_item(self, name: str, owner: str) -> None:
        if name in self.evidence:
            return
        if self.part == "public" and not name.startswith(items.PUBLIC):
            raise MissingInput(CONFIDENTIAL_PART, f"{name} is confidential")
        raise MissingInput(owner, f"{name} is missing")

    def parsed(self, name: str, owner: str, parse: Callable[[bytes], T]) -> T:
        """Return what ``parse`` makes of an item.

        Args:
            name, owner: as for :meth:`item`.
            parse: a message's, which raises MalformedError.

        Raises:
            MissingInput: as for :meth:`item`; of ``owner`` also if the bytes are malformed.
        """
        data = self.item(name, owner)
        try:
            return parse(data)
        except MalformedError as error:
            raise MissingInput(owner, f"{name}: {error}") from error

    def listed(self, name: str, owner: str, kind: type[EvidenceList[M]]) -> Iterator[M]:
        """Yield the messages of a list, which is not read as a whole.

        Args:
            name, owner: as for :meth:`item`.
            kind: the list's class.

        Raises:
            MissingInput: as for :meth:`parsed`.
        """
        return (message for message, _, _ in self.located(name, owner, kind))

    def located(
        self, name: str, owner: str, kind: type[EvidenceList[M]]
    ) -> Iterator[tuple[M, int, int]]:
        """Yield the messages of a list, each with the offsets by which the list reads it again.

        Args:
            name, owner, kind: as for :meth:`listed`.

        Raises:
            MissingInput: as for :meth:`parsed`.
        """
        with self.open_item(name, owner) as file:
            try:
                yield from kind.located(file)
            except MalformedError as error:
                raise MissingInput(owner, f"{name}: {error}") from error
