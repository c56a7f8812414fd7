"""How a check is written, and what becomes of what it finds.

A check is a function that looks at the context and reports findings. It never decides about
something that another check owns: where its input is missing or false for that reason, the fact
it asks for raises :class:`Lacking` with the owner's id, and the check says NOT RUN. So a cheat
that breaks one rule fails the checks that own the rule, and no others.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ragaudit.encoding.errors import InternalError, RagauditError

if TYPE_CHECKING:
    from ragaudit.verifier.procedure.context import Context

# A check that finds the same fault in a million records names the first ones and counts the rest.
MAX_EVIDENCE: Final = 20
MAX_TEXT: Final = 500

CONFIDENTIAL_PART: Final = "confidential part"
"""What a check names as missing when only the public part of the evidence is at hand."""


class Status(StrEnum):
    """What a check concludes."""

    PASS = "PASS"  # noqa: S105 - not a password
    FAIL = "FAIL"
    EXCEEDED = "EXCEEDED"
    NOT_ESTABLISHED = "NOT ESTABLISHED"
    NOT_RUN = "NOT RUN"


class Lacking(Exception):
    """An input is missing or unusable; the check ``owner`` is the one that says so."""

    def __init__(self, owner: str, reason: str) -> None:
        super().__init__(owner, reason)
        self.owner = owner
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check concludes and why.

    Attributes:
        needs: of NOT RUN, the ids of the checks that own what is missing.
    """

    number: int
    id: str
    title: str
    status: Status
    reason: str
    evidence: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(slots=True)
class Findings:
    """What a check reports while it runs."""

    owner: str
    faults: list[str] = field(default_factory=list)
    fault_count: int = 0
    lacks: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    summary: str = ""
    softened: Status | None = None
    softened_reason: str = ""

    def fault(self, reason: str, where: str = "") -> None:
        """Report that the rule is broken."""
        self.fault_count += 1
        if len(self.faults) < MAX_EVIDENCE:
            self.faults.append(_clipped(f"{where}: {reason}" if where else reason))

    def lack(self, lacking: Lacking, where: str = "") -> None:
        """Report that an input is missing; of an input this check owns, that is a fault."""
        if lacking.owner == self.owner:
            self.fault(lacking.reason, where)
        else:
            self.lacks.setdefault(lacking.owner, _clipped(lacking.reason))

    def note(self, text: str) -> None:
        """Add a line of evidence that is no fault."""
        if len(self.notes) < MAX_EVIDENCE:
            self.notes.append(_clipped(text))

    def soften(self, status: Status, reason: str) -> None:
        """Conclude EXCEEDED or NOT ESTABLISHED where nothing is false."""
        self.softened, self.softened_reason = status, reason

    @contextmanager
    def attempt(self, where: str = "") -> Iterator[None]:
        """Turn a refusal raised inside into a fault, a lacking input into a lack; go on after."""
        try:
            yield
        except Lacking as lacking:
            self.lack(lacking, where)
        except InternalError:
            raise
        except RagauditError as error:
            self.fault(str(error), where)

    def result(self, check: "Check") -> CheckResult:
        """The conclusion: a fault outweighs a missing input, which outweighs the rest."""
        status, reason, needs = self._conclusion()
        evidence = (*self.faults[1:], *self.notes) if self.faults else tuple(self.notes)
        return CheckResult(check.number, check.id, check.title, status, reason, evidence, needs)

    def _conclusion(self) -> tuple[Status, str, tuple[str, ...]]:
        if self.fault_count:
            more = self.fault_count - 1
            return Status.FAIL, self.faults[0] + (f" (and {more} more)" if more else ""), ()
        if self.lacks:
            reason = "; ".join(f"needs {owner}: {why}" for owner, why in self.lacks.items())
            return Status.NOT_RUN, _clipped(reason), tuple(self.lacks)
        if self.softened is not None:
            return self.softened, self.softened_reason, ()
        return Status.PASS, self.summary, ()


@dataclass(frozen=True, slots=True)
class Check:
    """One numbered rule of spec 9.

    Attributes:
        run: reports what it finds; whatever it raises beside Lacking and RagauditError is a
            fault of this software and ends the procedure without a verdict.
    """

    number: int
    id: str
    title: str
    run: Callable[["Context", Findings], None] = field(repr=False)

    def apply(self, context: "Context") -> CheckResult:
        found = Findings(self.id)
        with found.attempt():
            self.run(context, found)
        return found.result(self)


def _clipped(text: str) -> str:
    printable = "".join(c if c.isprintable() else "�" for c in text)
    return printable if len(printable) <= MAX_TEXT else printable[: MAX_TEXT - 1] + "…"
