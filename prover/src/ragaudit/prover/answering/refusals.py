"""Signed refusals: docs/spec/05-records.md §5.8."""

from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.promises import Reason, Refusal
from ragaudit.prover.errors import QueryRefused

BUDGET: Reason = "budget"
CLOSED: Reason = "closed"
UNAVAILABLE: Reason = "unavailable"

_TEXT = {
    BUDGET: ("the account's queries of this window are used up", "the next window"),
    CLOSED: ("the window is not open", "a query while the window is open"),
    UNAVAILABLE: ("the window cannot answer now", "a later query"),
}


class Refusals:
    """Signs refusals with the provider's key."""

    def __init__(self, key: PrivateKey) -> None:
        self._key = key

    def refuse(
        self,
        reason: Reason,
        *,
        origin: str,
        pseudonym: bytes,
        counter: int,
        time: int,
        detail: str = "",
        again: int | None = None,
    ) -> QueryRefused:
        """Return the error that carries the signed refusal.

        Args:
            counter: number of the account's logged queries.
            time: milliseconds.
            detail: more for the reader; it is not signed.
            again: milliseconds, from when on the same query may succeed, if waiting helps.
        """
        refusal = Refusal.issue(
            self._key,
            origin=origin,
            pseudonym=pseudonym,
            counter=counter,
            reason=reason,
            time=time,
        )
        what, expected = _TEXT[reason]
        return QueryRefused(
            f"{what}: {detail}" if detail else what,
            refusal=refusal.to_json(),
            where=origin,
            expected=expected,
            retry_after=None if again is None else seconds_until(again, time),
        )


def seconds_until(instant: int, now: int) -> int:
    """Whole seconds from ``now`` to an instant, both in milliseconds: at least 1, as a header."""
    return max(1, -(-(instant - now) // 1000))
