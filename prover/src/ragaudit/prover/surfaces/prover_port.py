"""The prover behind the surfaces: its words for a query and an answer, and theirs."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Protocol, runtime_checkable

import anyio.to_thread
from ragaudit.ledger.messages.filters import Filter
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import GeneratedAnswer, GenerationRequest
from ragaudit.ledger.messages.requests import MAX_QUERY_BYTES, Request
from ragaudit.prover.answering.query import check_request
from ragaudit.prover.errors import MalformedQuery, NotServed, UnknownAccount
from ragaudit.prover.lifecycle.asking import Answered, ServedDocument, receipt_of
from ragaudit.prover.service import Service
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.surfaces.queries import Answer, Completion, Forwarded, Hit, Index, Query
from ragaudit.prover.window.records import Asked


@runtime_checkable
class TakesWrites(Protocol):
    """A backend that passes writes of Chroma's interface on."""

    def forward_write(self, tenant: str, operation: str, body: bytes) -> Any:
        """Return status and body of the store's answer."""


class ServicePort:
    """What the surfaces ask of a service, see `Port`."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def account(self, key: str) -> Account:
        """Return the account of an API key; NotAuthenticated if there is none."""
        return self._service.accounts.authenticate(key)

    def end_user(self, account: Account, *, register: bool) -> Account:
        """Return an end user.

        Args:
            account: that names the user, with it; its dispute key is that of a user who has none,
                and holds no API key with which to bring one.
            register: whether an unknown one is made.

        Raises:
            NotServed: unknown.
            Conflict: unknown, and no slot is left in the window.
            NoWindowOpen: unknown, and no window is open to register it.
        """
        accounts = self._service.accounts
        try:
            found = accounts.named(account.name, account.user)
            return found.disputing_with(account.dispute_key)
        except UnknownAccount:
            if not register:
                raise NotServed(
                    "unknown end user", expected="one whom the operator has added"
                ) from None
        # The slots bound how many there can be: names are the application's to invent.
        self._service.asking.check_slot(account)
        # Somebody else may make it at the same moment.
        made = accounts.add_end_user(account.name, account.user or "", tenant=account.tenant)
        made = made.disputing_with(account.dispute_key)
        self._service.asking.register(made)
        return made

    def index(self, account: Account) -> Index:
        """Return what is known of the index that answers this account."""
        asked = self._service.asking.terms(account)
        policy, terms = asked.policy, asked.policy.retrieval
        return Index(
            rows=asked.rows,
            dimension=policy.dimension,
            metric=terms.metric,
            top_k_max=policy.top_k_max,
            columns={column.name: column.type for column in terms.public_columns},
        )

    def ask(
        self, account: Account, queries: Sequence[Query], idempotency_key: str | None
    ) -> list[Answer]:
        """Answer, record and charge each query.

        Args:
            account: registered in the window now, if it is not yet.
            queries: all of which are checked before the first one is answered.
            idempotency_key: of the call, None without one.

        Raises:
            MalformedError, UnsupportedError: one that the window does not take; nothing is charged.
            TooMany: more of them than the account has queries left; nothing is charged.
            NoWindowOpen: a query that has no stored answer, and no window to answer it.
            RagauditError: as `Asking.ask`.
        """
        asking = self._service.asking
        terms = asking.terms(account)
        policy, rows, live = terms.policy, terms.rows, terms.live
        requests = [_request(policy, query) for query in queries]
        keys = [_key(idempotency_key, number, len(queries)) for number in range(len(queries))]
        for request in requests:
            check_request(request, rows, policy)
        batch = [Asked.of(*each) for each in zip(requests, keys, strict=True)]
        # Between two windows nobody is registered, and what was answered is answered again.
        if live is not None:
            asking.register_in(live, account)
        with nullcontext() if live is None else asking.room(live, account, batch):
            return [
                _answer(asking.ask(account, request, idempotency_key=key, live=live))
                for request, key in zip(requests, keys, strict=True)
            ]

    async def complete(self, account: Account, question: str, ignored: Sequence[str]) -> Completion:
        """Generate an answer; the account is registered in the window, if it is not yet.

        Args:
            ignored: names of settings that are not honoured.

        Raises:
            MalformedQuery: a question of another length.
            RagauditError: as `Generating.generate`.
        """
        length = len(question.encode("utf-8", "surrogatepass"))
        if not 1 <= length <= MAX_QUERY_BYTES:
            raise MalformedQuery(
                f"a question of {length} bytes", expected=f"1 to {MAX_QUERY_BYTES}"
            )
        request = GenerationRequest(question, ignored=tuple(sorted(set(ignored))))
        file = await self._service.generating.generate(account, request)
        policy = await anyio.to_thread.run_sync(self._service.policy_of, file.public.query.window)
        answer, terms = file.answer, policy.generation
        assert terms is not None  # it was answered
        tokens, ended = 0, True
        if isinstance(answer, GeneratedAnswer):
            tokens, ended = len(answer.tokens), answer.tokens[-1:] == (terms.vocabulary.end,)
        return Completion(
            receipt_of(file), answer.text, tokens=tokens, ended=ended, time=file.public.issued
        )

    def fetch(self, account: Account, ids: Sequence[str]) -> list[Hit]:
        """Return those of the rows that this account was served in this window.

        Args:
            ids: the result is in their order; one that comes twice is there once.
        """
        bound = self._service.asking.policy(account).norm_bound
        served = self._service.asking.served(account, list(dict.fromkeys(ids)))
        return [_hit(row, bound) for row in served]

    def forward(self, tenant: str, operation: str, body: bytes) -> Forwarded:
        """Mark the index stale, durably, and pass a write on to the store.

        Args:
            operation: add, upsert, update or delete.
            body: checked JSON.

        Raises:
            NotServed: the backend takes no writes of this interface.
            StoreUnavailable: the mark cannot be made; nothing was passed on.
            BackendUnavailable: it is not known whether the store took it.
        """
        backend = self._service.backend
        if not isinstance(backend, TakesWrites):
            raise NotServed("writing", expected="a backend with this interface")
        # Before: whatever ends this process after the write, the next version takes it up.
        self._service.refresher.mark_stale(tenant)
        try:
            answer = backend.forward_write(tenant, operation, body)
        finally:
            # And after: a version that was read meanwhile has the mark, and may lack the write.
            # Whatever came of it: an answer that was lost may have been a write.
            self._service.refresher.mark_stale(tenant)
        return Forwarded(answer.status, answer.body)


def _key(key: str | None, number: int, count: int) -> str | None:
    """Return the idempotency key of one query of a call."""
    return key if key is None or count == 1 else f"{key} {number}"


def _request(policy: Policy, query: Query) -> Request:
    condition = Filter.from_json(query.condition, policy.retrieval.public_columns)
    return Request.of(policy, query.question, query.top_k, filter=condition.text)


def _answer(answered: Answered) -> Answer:
    bound, hits = answered.norm_bound, []
    for document, row in zip(answered.answer.documents, answered.vectors, strict=True):
        score = None if document.score is None else document.score / bound**2
        vector = tuple((row / bound).tolist())
        attributes = _attributes(document.attributes)
        hits.append(Hit(document.id, document.content, attributes, vector, score))
    return Answer(answered.receipt, tuple(hits))


def _hit(row: ServedDocument, bound: int) -> Hit:
    vector = tuple(x / bound for x in row.vector)
    return Hit(row.id, row.content, _attributes(row.attributes), vector)


def _attributes(text: str | None) -> dict[str, Any]:
    if not text:
        return {}
    found: dict[str, Any] = json.loads(text)
    return found
