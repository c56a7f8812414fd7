"""Running the steps of a receipt's check, and the step about the nonce (docs/spec 5.9, 11.10)."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.errors import StepRejected
from ragaudit.ledger.messages.chains import verify_nonce
from ragaudit.ledger.messages.entries import QueryEntry
from ragaudit.ledger.messages.generated import GenerationRequest
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_body import reject
from ragaudit.ledger.messages.receipt_views import StepResult
from ragaudit.ledger.messages.requests import Request

__all__ = ["OUTSTANDING", "Step", "check_nonce", "run_step", "run_steps"]

C = TypeVar("C")
Step = tuple[str, Callable[[C], str | None]]
"""A name, and what returns None when it is done, or what it lacks; it raises when it fails."""

OUTSTANDING = "an inclusion proof is outstanding"


def run_steps(check: C, steps: Sequence[Step[C]]) -> list[StepResult]:
    """Run steps in order, numbered from 1.

    Raises:
        StepRejected: a step failed; those behind it were not run.
    """
    return [run_step(number, check, step) for number, step in enumerate(steps, 1)]


def run_step(number: int, check: C, step: Step[C]) -> StepResult:
    """Run one step; whatever it finds is a rejection of the receipt at this step.

    Raises:
        StepRejected: it failed.
    """
    name, run = step
    try:
        missing = run(check)
    except RagauditError as error:
        raise StepRejected.at(number, name, error) from error
    if missing is None:
        return StepResult(number, name, "done")
    return StepResult(number, name, "not done", missing)


def check_nonce(
    entry: QueryEntry,
    nonce: bytes | None,
    request: Request | GenerationRequest,
    promise: Promise | None,
    anchor: bytes | None,
) -> str | None:
    """Check the nonce of an entry, and the promise that it keeps; return what is not known.

    Args:
        entry: a record or a charge.
        nonce: of the record, or of the answer to the charge.
        request: in the file.
        promise: of the entry, if there was one.
        anchor: of the account's nonce chain, if it is anchored.

    Raises:
        RejectedError: another promise or request, a nonce of no chain, or none where one is due.
    """
    if promise is not None:
        # Compared whole: any field still open would be a choice of who pays, or of what is read,
        # made with noise or coins in view.
        promise.verify_kept(entry)
        if promise.request != request:
            reject("another request than promised", where="request")
    if nonce is None:
        if anchor is not None:
            reject("no nonce", where="nonce", expected="the chain's: the account is anchored")
        return None
    if anchor is None:
        return "the anchor of the nonce chain is not known here"
    verify_nonce(entry.window, entry.pseudonym, anchor, entry.counter, nonce)
    return None if promise is not None else "the promise is not known here"
