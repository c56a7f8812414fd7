"""Ask an audited RAG service, check every receipt, anchor queries by a nonce chain."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragaudit.client.asynchronous import AsyncClient
    from ragaudit.client.blocking import Client, Pool
    from ragaudit.client.errors import (
        AnswerRejected,
        BudgetExhausted,
        CannotClaim,
        InvalidReply,
        LessThanDemanded,
        PromiseUnanswered,
        ProviderRefusal,
        ServiceUnreachable,
        StateConflict,
        WrongPin,
    )
    from ragaudit.client.pool import AsyncPool
    from ragaudit.client.results import (
        AsyncReceipt,
        CheckedAnswer,
        GeneratedResult,
        Receipt,
        SearchResult,
    )
    from ragaudit.encoding.errors import MalformedError, RagauditError
    from ragaudit.ledger.messages.bodies import Submission

__all__ = [
    "AnswerRejected",
    "AsyncClient",
    "AsyncPool",
    "AsyncReceipt",
    "BudgetExhausted",
    "CannotClaim",
    "CheckedAnswer",
    "Client",
    "GeneratedResult",
    "InvalidReply",
    "LessThanDemanded",
    "MalformedError",
    "Pool",
    "PromiseUnanswered",
    "ProviderRefusal",
    "RagauditError",
    "Receipt",
    "SearchResult",
    "ServiceUnreachable",
    "StateConflict",
    "Submission",
    "WrongPin",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return a name of `__all__`, whose module is only imported now: commands need few."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        homes = ("client.errors", "client.results", "client.asynchronous", "client.blocking",
                 "client.pool", "encoding.errors", "ledger.messages.bodies")  # fmt: skip
        modules = (import_module(f"ragaudit.{home}") for home in homes)
        return next(getattr(each, name) for each in modules if hasattr(each, name))
