"""How a check is written, what becomes of what it finds, and what follows from all of them.

A check is a function that looks at the context and reports findings. It never decides about
something that another check owns: where its input is missing or false for that reason, the fact
it asks for raises MissingInput with the owner's id, and the check says NOT RUN. So a cheat that
breaks one rule fails the checks that own the rule, and no others (docs/spec/09-audit.md §9.6).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from ragaudit.encoding.errors import InternalError, MalformedError, RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.signed_results import References
from ragaudit.ledger.messages.verdict import (
    REFUSED,
    Claims,
    Predicate,
    SignedCheck,
    Status,
    Verdict,
)
from ragaudit.privacy.accounting.generation import ChannelCosts
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput

# A check that finds the same fault in a million records names the first ones and counts the rest.
MAX_EVIDENCE: Final = 20
MAX_TEXT: Final = 500

UNNOISED: Final = "no noise"


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
        """Report that the rule is broken.

        Args:
            reason: for people; a remote party may have chosen parts of it, so it is clipped.
            where: a place in the evidence.
        """
        self.fault_count += 1
        if len(self.faults) < MAX_EVIDENCE:
            self.faults.append(_clipped(f"{where}: {reason}" if where else reason))

    def add_missing(self, missing: MissingInput, where: str = "") -> None:
        """Report that an input is missing; of an input this check owns, that is a fault.

        Args:
            missing: names the owner.
            where: a place in the evidence, for a fault.
        """
        if missing.owner == self.owner:
            self.fault(missing.reason, where)
        else:
            self.missing.setdefault(missing.owner, _clipped(missing.reason))

    def note(self, text: str) -> None:
        """Add a line of evidence that is no fault; beyond MAX_EVIDENCE lines it is dropped.

        Args:
            text: for people; clipped, as a remote party may have chosen parts of it.
        """
        if len(self.notes) < MAX_EVIDENCE:
            self.notes.append(_clipped(text))

    def downgrade(self, status: Status, reason: str) -> None:
        """Conclude EXCEEDED or NOT ESTABLISHED where nothing is false or missing.

        Args:
            status: one of the two.
            reason: for people.
        """
        self.downgraded, self.downgraded_reason = status, reason

    def attempt(self, where: str = "") -> AbstractContextManager[None]:
        """Turn a refusal raised inside into a fault, report a missing input; go on after.

        Args:
            where: a place in the evidence, for the fault.

        Raises:
            InternalError: a fault of this software.
        """
        return _Attempt(self, where)

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


class _Attempt:
    """Of `Findings.attempt`; a generator would take three times as long, a million times."""

    __slots__ = ("_found", "_where")

    def __init__(self, found: Findings, where: str) -> None:
        self._found, self._where = found, where

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> bool:
        if isinstance(error, MissingInput):
            self._found.add_missing(error, self._where)
            return True
        # A fault of this software accuses nobody: there is no verdict then.
        if isinstance(error, RagauditError) and not isinstance(error, InternalError):
            self._found.fault(str(error), self._where)
            return True
        return False


@dataclass(frozen=True, slots=True)
class Check:
    """One numbered rule of spec 9.

    Attributes:
        of_noise: whether its rule is about noise, so that it does not apply without (9.7).
        asked_by: the member of a policy without which it is not listed; empty if it always is.
        run: reports what it finds; whatever it raises beside MissingInput and RagauditError is a
            fault of this software and ends the procedure without a verdict.
    """

    number: int
    id: str
    title: str
    run: Callable[[Context, Findings], None] = field(repr=False)
    asked_by: str = ""
    of_noise: bool = False

    def apply(self, context: Context) -> CheckResult:
        """Return what the check concludes about the evidence of ``context``."""
        if self.of_noise and context.unnoised:
            status = Status.NOT_APPLICABLE
            return CheckResult(self.number, self.id, self.title, status, UNNOISED)
        found = Findings(self.id)
        with found.attempt():
            self.run(context, found)
        return found.result(self)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of the checks, the conclusion, and everything that the verdict states beside them.

    Attributes:
        result: one of RESULTS; None if the checks that ran cannot conclude (the public part
            alone, an opening with nothing to refuse).
        worthless: the provider's randomness was derived from a published seed.
        terms: digest of the verifier's terms, hexadecimal; empty where there are none.
        epsilon: the table of spec 7.4; None where check 21 did not run.
        sampling, counts, coalition, scope: JSON objects of spec 10.3.
        attested: what third parties say of the log; None where the policy asks none.
        generation: what the generation channel costs; None in a window without it.
        test_results: references to results of others, as the evidence lists them; None: none.
        withheld: rows that answers withheld, by account; None in a window with noise.
        overlaps: windows at the same time, and what they cost together; None where there are none.
        documents: how many rows and documents there are, by tenant; None without ``owners``.
    """

    window: str
    provider: str
    engine: str
    result: str | None
    worthless: bool
    checks: tuple[CheckResult, ...]
    terms: str = ""
    epsilon: EpsilonTable | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    coalition: Mapping[str, Any] = field(default_factory=dict)
    scope: Mapping[str, Any] = field(default_factory=dict)
    not_covered: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    attested: Mapping[str, Any] | None = None
    generation: ChannelCosts | None = None
    test_results: References | None = None
    withheld: Mapping[str, Any] | None = None
    overlaps: Mapping[str, Any] | None = None
    documents: Sequence[Mapping[str, Any]] | None = None

    def check(self, check_id: str) -> CheckResult:
        """Return the result of the check called ``check_id``.

        Raises:
            KeyError: it was not run.
        """
        for result in self.checks:
            if result.id == check_id:
                return result
        raise KeyError(check_id)

    def sign(self, key: PrivateKey, digests: Mapping[str, str], *, time: int) -> bytes:
        """Return the signed verdict of this outcome, a DSSE envelope (spec 10.3).

        Args:
            key: the verdict key.
            digests: `Evidence.digests` of everything the procedure saw.
            time: the verifier's clock, Unix milliseconds.

        Raises:
            MalformedVerdict: the outcome has no result.
        """
        return Verdict.issue(key, digests, self.predicate(time=time))

    def predicate(self, *, time: int) -> Predicate:
        """Return what a verdict signed at ``time`` (Unix milliseconds) states of this outcome."""
        return Predicate(
            window=self.window,
            provider=self.provider,
            result=self.result or "",
            worthless=self.worthless,
            terms=self.terms,
            time=time,
            engine=self.engine,
            checks=tuple(
                SignedCheck(check.number, check.id, check.status, check.reason, check.evidence)
                for check in self.checks
            ),
            epsilon={} if self.epsilon is None else self.epsilon.to_json(),
            sampling=self.sampling,
            counts=self.counts,
            coalition=self.coalition,
            scope=self.scope,
            not_covered=self.not_covered,
            assumptions=self.assumptions,
            claims=self.claims,
            attested=self.attested,
            generation=None if self.generation is None else self.generation.to_json(),
            test_results=self.test_results,
            withheld=self.withheld,
            overlaps=self.overlaps,
            documents=self.documents,
        )

    @property
    def claims(self) -> Claims:
        """The claims of the verdict, as they follow from the results (spec 10.6)."""
        voids = self.counts.get("voids")
        return claims(self.checks, refused=self.result == REFUSED, voids=voids)

    @property
    def failed(self) -> tuple[str, ...]:
        """Ids of the checks that failed."""
        return tuple(result.id for result in self.checks if result.status is Status.FAIL)


def signed_epsilon(predicate: Predicate) -> EpsilonTable | None:
    """Return the epsilon table that a verdict states; None where what is signed is not one."""
    try:
        return EpsilonTable.from_json(predicate.epsilon)
    except MalformedError:
        return None


def claims(
    results: Sequence[CheckResult],
    removed: Collection[str] = (),
    *,
    refused: bool = False,
    voids: object = None,
) -> Claims:
    """Return the claims of a verdict, as they follow from results (spec 10.6).

    Args:
        results: of the checks that ran.
        removed: ids of the checks that were taken off the list. A check that could not run counts
            as PASS if all that it lacked is owned by these. Where an owner is on the list it has
            failed anyway; and if it has not, nothing is established.
        refused: whether they refuse the opening.
        voids: as of `Claims.of`.
    """
    statuses = {
        result.id: Status.PASS if _excused(result, removed) else result.status for result in results
    }
    return Claims.of(statuses, refused=refused, voids=voids)


def _excused(result: CheckResult, removed: Collection[str]) -> bool:
    if result.status is not Status.NOT_RUN:
        return False
    return bool(result.needs) and all(owner in removed for owner in result.needs)


def _clipped(text: str) -> str:
    # A provider chooses names and texts that end up here, and a report prints them.
    printable = "".join(c if c.isprintable() else "�" for c in text)
    return printable if len(printable) <= MAX_TEXT else printable[: MAX_TEXT - 1] + "…"
