"""Ask an audited RAG service, check every receipt, anchor queries by a nonce chain."""

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
