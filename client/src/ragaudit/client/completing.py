"""Wait for the inclusion proof of a receipt, and notice when the provider withholds it."""

import asyncio

from ragaudit.client.checker import Checker
from ragaudit.client.errors import ProviderRefusal, ServiceUnreachable
from ragaudit.client.results import CheckedReceipt
from ragaudit.client.session import POLL_SECONDS, Session
from ragaudit.encoding.errors import InternalError, RefusedError, UnavailableError
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.log.tlog_proof import TlogProof

__all__ = ["await_proof"]

_TOO_EARLY = 425  # RFC 8470; here: no cosigned checkpoint covers the record yet


async def await_proof(
    session: Session, checker: Checker, receipt: CheckedReceipt, seconds: float
) -> TlogProof:
    """Return the inclusion proof of a receipt, not checked yet.

    Args:
        session, checker: of the account.
        receipt: without a proof.
        seconds: how long to wait.

    Raises:
        AnswerRejected: the proof is withheld: the merge delay is over, and the verifier has
            cosigned a checkpoint that covers the record.
        ServiceUnreachable: no proof in time.
    """
    path = session.path(f"receipts/{receipt.index}/proof")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        try:
            return TlogProof.parse((await session.provider.get_text(path)).encode())
        except ProviderRefusal as error:
            if error.status != _TOO_EARLY:
                raise
            if checker.overdue(receipt.file):
                await _check_withheld(session, checker, receipt)
            if loop.time() > deadline:
                raise ServiceUnreachable("no inclusion proof yet", where=path) from error
        await asyncio.sleep(POLL_SECONDS)


async def _check_withheld(session: Session, checker: Checker, receipt: CheckedReceipt) -> None:
    """Check that the verifier has not cosigned what the provider gives no proof of.

    Raises:
        AnswerRejected: it has.
    """
    if (verifier := session.verifier) is None:
        return
    try:
        size = await verifier.cosigned_size(session.window.view.policy.keys.log)
    except (RefusedError, UnavailableError, InternalError):
        return  # no evidence: the provider may be waiting for a verifier that is away
    if size > receipt.index:
        error = ReceiptRejected(
            "no inclusion proof after the merge delay",
            where=f"index {receipt.index}",
            expected=f"one under the cosigned checkpoint of {size} entries",
        )
        raise checker.rejected(receipt.counter, receipt.file.to_json(), error)
