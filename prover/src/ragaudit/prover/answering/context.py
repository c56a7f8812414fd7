"""What every query is answered with, and the signed refusals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.identifiers import pseudonym
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Reason, Refusal
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.backends.interface import Backend
from ragaudit.prover.errors import QueryRefused
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.registrations import Registered
from ragaudit.prover.window.windows import Window, Windows

if TYPE_CHECKING:
    from ragaudit.prover.answering.query import Stages

_WORDS: dict[Reason, tuple[str, str]] = {
    "budget": ("the account's queries of this window are used up", "the next window"),
    "closed": ("the window is not open", "a query while the window is open"),
    "unavailable": ("the window cannot answer now", "a later query"),
}


@dataclass(frozen=True, repr=False)
class Context:
    """What every query of a prover is answered with.

    Attributes:
        key: the provider's, signs promises, refusals and receipts.
        clock: Unix milliseconds.
    """

    store: Store
    windows: Windows
    backend: Backend
    mechanism: Mechanism
    key: PrivateKey
    clock: Callable[[], int]
    stages: "Stages"

    def refuse(
        self,
        window: OpenWindow,
        registered: Registered,
        reason: Reason,
        detail: str = "",
        *,
        again: int | None = None,
    ) -> QueryRefused:
        """Return the error with the signed refusal of a registered account's query; see `refuse`.

        Args:
            detail: more for the reader; it is not signed.
            again: Unix milliseconds from which the same query may succeed; None if waiting does
                not help.
        """
        return refuse(
            self.key,
            reason,
            origin=window.origin,
            pseudonym=registered.pseudonym,
            counter=registered.counter,
            time=self.clock(),
            detail=detail,
            again=again,
        )


def refuse(
    key: PrivateKey,
    reason: Reason,
    *,
    origin: str,
    pseudonym: bytes,
    counter: int,
    time: int,
    detail: str = "",
    again: int | None = None,
) -> QueryRefused:
    """Return the error that carries a signed refusal (docs/spec/05-records.md §5.8).

    Args:
        key: the provider's.
        origin: of the window's log.
        pseudonym: the account's, 32 bytes.
        counter: number of the account's logged queries.
        time: Unix milliseconds.
        detail: more for the reader; it is not signed.
        again: Unix milliseconds from which the same query may succeed; None if waiting does not
            help.
    """
    refusal = Refusal(
        origin=origin, pseudonym=pseudonym, counter=counter, reason=reason, time=time
    ).signed(key)
    what, expected = _WORDS[reason]
    return QueryRefused(
        f"{what}: {detail}" if detail else what,
        refusal=refusal.to_json(),
        where=origin,
        expected=expected,
        retry_after=None if again is None else seconds_until(again, time),
    )


def refuse_unloaded(key: PrivateKey, window: Window, account: Account, time: int) -> QueryRefused:
    """Return the signed refusal of a window that is not in memory: its account can show it.

    Args:
        time: Unix milliseconds.
    """
    return refuse(
        key,
        "closed",
        origin=Policy.parse(window.policy).origin,
        pseudonym=pseudonym(window.pseudonym_key, window.name, account.name, account.user),
        counter=0,
        time=time,
        detail=f"it is {window.state}",
    )


def seconds_until(instant: int, now: int) -> int:
    """Return the whole seconds between two Unix milliseconds: at least 1, as a header shows it.

    Args:
        instant, now: Unix milliseconds; ``instant`` may be past.
    """
    return max(1, -(-(instant - now) // 1000))
