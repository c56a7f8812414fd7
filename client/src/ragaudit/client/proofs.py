"""Wait for inclusion proofs; whether one is withheld, the verifier's checkpoints say."""

import asyncio

from ragaudit.client.checker import Checker
from ragaudit.client.errors import ProviderRefusal, ServiceUnreachable
from ragaudit.client.results import CheckedAnswer, CheckedReceipt
from ragaudit.client.session import POLL_SECONDS, Session
from ragaudit.encoding.errors import InternalError, RefusedError, UnavailableError
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.receipts import ReceiptFile

__all__ = ["await_proof", "complete"]


async def complete(
    session: Session, checker: Checker, receipt: CheckedReceipt, seconds: float
) -> None:
    """Fetch the inclusion proof of a record's receipt, check it and add it to the receipt.

    Args:
        session, checker: of the account.
        receipt: of this account; it is changed in place.
        seconds: how long to wait for the proof.

    Raises:
        AnswerRejected, ServiceUnreachable: as `await_proof`; the proof is false.
    """
    # A proof never changes what it proves: one is enough.
    if receipt.completed:
        return
    proof = await await_proof(session, checker, receipt, receipt.index, seconds)
    old = receipt.file
    file = ReceiptFile(old.request, old.answer, old.public.with_proof(proof), old.private)
    receipt.checks = await asyncio.to_thread(checker.completed, file, receipt.checks)
    receipt.file = file
    if session.state is not None and receipt.path is not None:
        await asyncio.to_thread(session.state.keep_receipt, receipt.counter, file.encode())


_TOO_EARLY = 425  # RFC 8470; here: no cosigned checkpoint covers the entry yet


async def await_proof(
    session: Session,
    checker: Checker,
    receipt: CheckedReceipt | CheckedAnswer,
    index: int,
    seconds: float,
) -> TlogProof:
    """Return the inclusion proof of an entry of a receipt, not checked yet.

    Args:
        session, checker: of the account.
        receipt: without the proof.
        index: of the entry.
        seconds: how long to wait.

    Raises:
        AnswerRejected: the proof is withheld: the merge delay is over, and the verifier has
            cosigned a checkpoint that covers the entry.
        ServiceUnreachable: no proof in time.
    """
    path = session.path(f"receipts/{index}/proof")
    # The loop's clock, which nobody sets: a wait must not end early or never.
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        try:
            return TlogProof.parse((await session.provider.get_text(path)).encode())
        except ProviderRefusal as error:
            if error.status != _TOO_EARLY:
                raise
            # Before that the provider may wait for its next checkpoint, as it promised.
            if checker.overdue(receipt.file):
                await _check_withheld(session, checker, receipt, index)
            if loop.time() > deadline:
                raise ServiceUnreachable("no inclusion proof yet", where=path) from error
        await asyncio.sleep(POLL_SECONDS)


async def _check_withheld(
    session: Session, checker: Checker, receipt: CheckedReceipt | CheckedAnswer, index: int
) -> None:
    """Check that the verifier has not cosigned what the provider gives no proof of.

    Raises:
        AnswerRejected: it has.
    """
    # Without a verifier nobody can tell a provider that waits from one that withholds.
    if (verifier := session.verifier) is None:
        return
    try:
        size = await verifier.cosigned_size(session.window.view.policy.keys.log)
    except (RefusedError, UnavailableError, InternalError):
        return  # no evidence: the provider may be waiting for a verifier that is away
    if size > index:
        error = ReceiptRejected(
            "no inclusion proof after the merge delay",
            where=f"index {index}",
            expected=f"one under the cosigned checkpoint of {size} entries",
        )
        raise checker.rejected(receipt.counter, receipt.file.to_json(), error)
