"""What a run of the procedure concludes (docs/spec/09-audit.md)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.verifier.procedure.framework import CheckResult, Status

PASS: Final = "PASS"  # noqa: S105 - not a password
FAIL: Final = "FAIL"
EXCEEDED: Final = "EXCEEDED"
REFUSED: Final = "REFUSED"
RESULTS: Final = (PASS, FAIL, EXCEEDED, REFUSED)


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

    def check(self, check_id: str) -> CheckResult:
        """Return the result of the check called ``check_id``.

        Raises:
            KeyError: it was not run.
        """
        for each in self.checks:
            if each.id == check_id:
                return each
        raise KeyError(check_id)

    @property
    def failed(self) -> tuple[str, ...]:
        """Ids of the checks that failed."""
        return tuple(each.id for each in self.checks if each.status is Status.FAIL)


def conclude(results: Sequence[CheckResult], removed: Collection[str] = ()) -> str:
    """Return PASS, FAIL or EXCEEDED, as it follows from results.

    Args:
        removed: ids of the checks that were taken off the list. A check that could not run keeps
            PASS only if all that it lacked is owned by these. Where an owner is on the list it
            has failed anyway; and if it has not, nothing is established.
    """
    statuses = {each.status for each in results}
    blocked = any(each.status is Status.NOT_RUN and not _excused(each, removed) for each in results)
    if Status.FAIL in statuses or blocked:
        return FAIL
    return EXCEEDED if Status.EXCEEDED in statuses else PASS


def _excused(result: CheckResult, removed: Collection[str]) -> bool:
    return bool(result.needs) and all(owner in removed for owner in result.needs)
