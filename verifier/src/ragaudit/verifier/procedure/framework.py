"""How a check is written, and what becomes of what it finds.

A check is a function that looks at the context and reports findings. It never decides about
something that another check owns: where its input is missing or false for that reason, the fact
it asks for raises MissingInput with the owner's id, and the check says NOT RUN. So a cheat that
breaks one rule fails the checks that own the rule, and no others.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ragaudit.encoding.errors import InternalError, RagauditError
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput

# A check that finds the same fault in a million records names the first ones and counts the rest.
MAX_EVIDENCE: Final = 20
MAX_TEXT: Final = 500


class Status(StrEnum):
    """What a check concludes."""

    PASS = "PASS"  # noqa: S105 - not a password
    FAIL = "FAIL"
    EXCEEDED = "EXCEEDED"
    NOT_ESTABLISHED = "NOT ESTABLISHED"
    NOT_RUN = "NOT RUN"


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
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    summary: str = ""
    downgraded: Status | None = None
    downgraded_reason: str = ""

    def fault(self, reason: str, where: str = "") -> None:
        """Report that the rule is broken."""
        self.fault_count += 1
        if len(self.faults) < MAX_EVIDENCE:
            self.faults.append(_clipped(f"{where}: {reason}" if where else reason))

    def add_missing(self, missing: MissingInput, where: str = "") -> None:
        """Report that an input is missing; of an input this check owns, that is a fault."""
        if missing.owner == self.owner:
            self.fault(missing.reason, where)
        else:
            self.missing.setdefault(missing.owner, _clipped(missing.reason))

    def note(self, text: str) -> None:
        """Add a line of evidence that is no fault."""
        if len(self.notes) < MAX_EVIDENCE:
            self.notes.append(_clipped(text))

    def downgrade(self, status: Status, reason: str) -> None:
        """Conclude EXCEEDED or NOT ESTABLISHED where nothing is false."""
        self.downgraded, self.downgraded_reason = status, reason

    @contextmanager
    def attempt(self, where: str = "") -> Iterator[None]:
        """Turn a refusal raised inside into a fault, report a missing input; go on after."""
        try:
            yield
        except MissingInput as missing:
            self.add_missing(missing, where)
        except InternalError:
            raise
        except RagauditError as error:
            self.fault(str(error), where)

    def result(self, check: "Check") -> CheckResult:
        """Return the conclusion: a fault outweighs a missing input, which outweighs the rest."""
        status, reason, needs = self._conclusion()
        evidence = (*self.faults[1:], *self.notes) if self.faults else tuple(self.notes)
        return CheckResult(check.number, check.id, check.title, status, reason, evidence, needs)

    def _conclusion(self) -> tuple[Status, str, tuple[str, ...]]:
        if self.fault_count:
            more = self.fault_count - 1
            return Status.FAIL, self.faults[0] + (f" (and {more} more)" if more else ""), ()
        if self.missing:
            reason = "; ".join(f"needs {owner}: {why}" for owner, why in self.missing.items())
            return Status.NOT_RUN, _clipped(reason), tuple(self.missing)
        if self.downgraded is not None:
            return self.downgraded, self.downgraded_reason, ()
        return Status.PASS, self.summary, ()


@dataclass(frozen=True, slots=True)
class Check:
    """One numbered rule of spec 9.

    Attributes:
        run: reports what it finds; whatever it raises beside MissingInput and RagauditError is a
            fault of this software and ends the procedure without a verdict.
    """

    number: int
    id: str
    title: str
    run: Callable[[Context, Findings], None] = field(repr=False)

    def apply(self, context: Context) -> CheckResult:
        """Return what the check concludes about the evidence of ``context``."""
        found = Findings(self.id)
        with found.attempt():
            self.run(context, found)
        return found.result(self)


def _clipped(text: str) -> str:
    printable = "".join(c if c.isprintable() else "�" for c in text)
    return printable if len(printable) <= MAX_TEXT else printable[: MAX_TEXT - 1] + "…"
