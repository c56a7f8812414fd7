"""What an application may ask, whichever surface it speaks to: the one port behind all of them.

A surface translates; which window answers, what a retry gets, which receipt and which document an
account may see again is decided here.

A question to the generation channel holds its account's turn and a thread while it is charged.
While it is generated it holds neither, but one of the few threads that ask the model; and while its
answer waits, nothing.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from math import isqrt
from typing import Any

import anyio.to_thread
import numpy as np
import numpy.typing as npt
from ragaudit.encoding.errors import Conflict
from ragaudit.ledger.messages.entries import Opening
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import GeneratedFile, GenerationRequest, ReceiptFile
from ragaudit.ledger.messages.requests import Answer, Request
from ragaudit.prover.answering.answering import Retrieval
from ragaudit.prover.answering.context import Context
from ragaudit.prover.answering.generation import Generation
from ragaudit.prover.answering.query import Logged
from ragaudit.prover.answering.receipts import answer_of, receipt_file, ties_that_leave
from ragaudit.prover.errors import NoWindowOpen, QueryRefused, UnknownRecord
from ragaudit.prover.index.committed import load_index
from ragaudit.prover.lifecycle.open_windows import OpenWindows
from ragaudit.prover.lifecycle.retention import check_kept
from ragaudit.prover.store.accounts import Account, Accounts
from ragaudit.prover.store.states import REGISTERS, UNSIGNED, State
from ragaudit.prover.window.charges import StoredCharge, charge_at, find_charge
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import (
    Asked,
    Place,
    account_of,
    delivery_of,
    find_identical,
    find_identical_elsewhere,
    find_keyed,
    record_at,
    served_rows,
)
from ragaudit.prover.window.registrations import Registered, Registrar, find
from ragaudit.prover.window.windows import Recent
from ragaudit.serving.exchange import Receipt, note, phase, step_aside

_log = logging.getLogger(__name__)

AGAIN_SECONDS = 60
_TO_COME = (*UNSIGNED, *REGISTERS)
_WAS_OPEN = (State.OPEN, State.CLOSED, State.CHALLENGED, State.ARCHIVED)
_IDS_AT_ONCE = 500
_LIVE = (State.OPEN, State.CLOSED)
LONGEST_LIFE = 3_600_000  # milliseconds for which another window's answer is looked for


@dataclass(frozen=True)
class ServedDocument:
    """A document that an account was given, as it was and still is.

    Attributes:
        position: of its row.
        version: of the index that it was selected from last.
        attributes: canonical JSON of all that the store holds beside the text; empty for nothing.
        columns: values of its public columns.
        vector: the committed one, d integers of norm at most B, which a receipt shows anyway.
    """

    position: int
    version: int
    id: str
    content: str = field(repr=False)
    attributes: str = field(repr=False)
    columns: Mapping[str, object] = field(repr=False)
    vector: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True)
class Answered:
    """What an account was answered; the receipt is made when it is asked for.

    Attributes:
        receipt: its id, see `receipt_id`.
        vectors: the committed rows of the documents, integers [n, d] of norm at most B.
        norm_bound: B.
    """

    receipt: str
    answer: Answer
    vectors: npt.NDArray[Any] = field(repr=False)
    norm_bound: int


def receipt_id(file: ReceiptFile) -> str:
    """Return the id by which an account gets a receipt again: its window and place in the log.

    Args:
        file: the receipt file, as it was answered.
    """
    return id_of(file.public.query.window, file.public.index)


def id_of(window: str, position: int) -> str:
    """Return the id of the receipt of a record, see `receipt_id`.

    Args:
        position: of the record in the window's log.
    """
    return f"{window}.{position}"


def _place(receipt: str) -> Place | None:
    """Return where the entry of a receipt's id stands, None if it is no such id."""
    window, _, index = receipt.rpartition(".")
    if not (index.isascii() and index.isdecimal() and len(index) < 16):
        return None
    return Place(window, int(index))


@dataclass(frozen=True)
class Terms:
    """By what a request is read: a window's policy, and N of the index that it asks.

    Attributes:
        live: the window, None between two.
    """

    policy: Policy
    rows: int
    live: OpenWindow | None = None


def answers(policy: Policy, tenant: str, now: int) -> bool:
    """Return whether a window whose state is open answers a tenant now.

    Args:
        policy: of the window.
        now: Unix milliseconds; the state may be some moments behind it.
    """
    return tenant in policy.tenants and now < 1000 * policy.end


def last_terms(recent: list[Recent], tenant: str) -> Terms | None:
    """Return the terms of the newest window that was open and served a tenant; None without one.

    Args:
        recent: windows, the newest first.
    """
    for window in recent:
        if window.state in _WAS_OPEN and window.opening_body is not None:
            policy = Policy.parse(window.policy)
            if tenant in policy.tenants:
                return Terms(policy, Opening.parse(window.opening_body).tenant(tenant).rows)
    return None


def none_open(recent: list[Recent], tenant: str, now: int) -> NoWindowOpen:
    """Return the error of a tenant that no window serves now, with the time to ask again.

    That is the start of the next window, if there is one; a minute, if nobody has made one yet.

    Args:
        recent: windows, the newest first.
        now: Unix milliseconds.
    """
    policies = [Policy.parse(window.policy) for window in recent if window.state in _TO_COME]
    starts = [policy.start for policy in policies if tenant in policy.tenants]
    coming = [1000 * start - now for start in starts if 1000 * start > now]
    again = -(-min(coming) // 1000) if coming else AGAIN_SECONDS
    return NoWindowOpen(
        "no window is open for this tenant",
        where=tenant,
        expected=f"a query in {again} s",
        retry_after=again,
    )


class Asking:
    """Queries, receipts and documents of accounts. Safe to use from several threads."""

    def __init__(
        self,
        *,
        retrieval: Retrieval,
        open_windows: OpenWindows,
        open_window: Callable[[str, Account], OpenWindow],
        registrar: Registrar,
        accounts: Accounts,
    ) -> None:
        """Collect the parts.

        Args:
            open_window: returns a window by name, or refuses with a signature.
        """
        self._retrieval = retrieval
        self._context = retrieval.context
        self._open_windows = open_windows
        self._open_window = open_window
        self._registrar = registrar
        self._accounts = accounts

    def window(self, account: Account, name: str | None = None) -> OpenWindow:
        """Return the window that an account asks.

        Args:
            name: of a window; None for the newest open one that serves the account's tenant.

        Raises:
            NoWindowOpen: none is open that does.
            UnknownWindow, QueryRefused: there is none of this name, or it cannot be open.
        """
        if name is not None:
            return self._open_window(name, account)
        windows, now = self._context.windows, self._context.clock()
        for each in windows.open():
            live = self._open_windows.get(each)
            if answers(live.policy, account.tenant, now):
                return live
        raise none_open(windows.recent(), account.tenant, now)

    def terms(self, account: Account) -> Terms:
        """Return by what a request of an account is read.

        Between two windows that is the last one: a retry of what it answered is known again.

        Raises:
            NoWindowOpen: none is open that serves the account, nor was one.
        """
        try:
            live = self.window(account)
        except NoWindowOpen:
            last = last_terms(self._context.windows.recent(), account.tenant)
            if last is None:
                raise
            return last
        return Terms(live.policy, self._rows(live, account), live)

    def query(
        self,
        account: Account,
        request: Request,
        *,
        window: str | None = None,
        idempotency_key: str | None = None,
    ) -> ReceiptFile:
        """Answer a plain account, or return what it was answered to the same request before.

        Args:
            account: authenticated.
            window: by name; None for the one that is open now. A retry without a name is known
                again after the next window has opened.
            idempotency_key: as the caller sent it; None without one.

        Raises:
            NoWindowOpen, UnknownWindow: as `window`.
            MalformedRequest: a key of another form.
            RagauditError: as `Retrieval.take`.
        """
        found = self._take(account, request, idempotency_key, window=window)
        return self._again(account, found) if isinstance(found, Place) else found.answer()

    def ask(
        self,
        account: Account,
        request: Request,
        *,
        idempotency_key: str | None = None,
        live: OpenWindow | None = None,
    ) -> Answered:
        """Answer as `query` does, without the receipt: `receipt` gives it, and it is the same.

        Args:
            account, request, idempotency_key: as of `query`.
            live: the window that the account asks, if its caller knows it from `terms`.

        Raises: as `query`.
        """
        found = self._take(account, request, idempotency_key, live=live)
        if isinstance(found, Place):
            file = self._again(account, found)
            rows = file.private.rows
            bound = isqrt(sum(x * x for row in rows[:1] for x in (*row.vector, *row.squares)))
            vectors = np.array([row.vector for row in rows])
            return Answered(receipt_id(file), file.answer, vectors, bound)
        answer, index = found.answered(), found.index
        rows_of = np.array([each.position for each in answer.documents], dtype=np.int64)
        return Answered(
            id_of(found.window.name, found.record.position),
            answer,
            index.vectors[rows_of],
            index.norm_bound,
        )

    def room(
        self, live: OpenWindow, account: Account, batch: Sequence[Asked]
    ) -> AbstractContextManager[None]:
        """Keep an account's budget for a batch, see `Retrieval.room`."""
        return self._retrieval.room(live, account, batch)

    def _take(
        self,
        account: Account,
        request: Request,
        idempotency_key: str | None,
        *,
        window: str | None = None,
        live: OpenWindow | None = None,
    ) -> Logged | Place:
        """Return the record that answers, or where the one of another window stands."""
        asked = Asked.of(request, idempotency_key)
        if window is not None:
            try:
                named = self.window(account, window)
            except QueryRefused:
                # Of a window that is not in memory any more, what it answered is stored.
                earlier = self._earlier(account, asked, None)
                if earlier is None or earlier.window != window:
                    raise
                return earlier
            return self._retrieval.take(named, account, request, asked)
        try:
            live = live or self.window(account)
        except NoWindowOpen:
            earlier = self._earlier(account, asked, None)
            if earlier is None:
                raise
            return earlier
        earlier = self._earlier(account, asked, live)
        return earlier or self._retrieval.take(live, account, request, asked)

    def receipt(self, account: Account, receipt: str) -> ReceiptFile:
        """Return the receipt file of an account's own record, as it was answered.

        Args:
            receipt: its id, see `receipt_id`.

        Raises:
            UnknownRecord: not the id of a receipt of this account.
            NotFound: the window's answers were deleted.
            BackendUnavailable: nothing is stored of it, and the backend cannot be asked.
        """
        place = _place(receipt)
        unknown = UnknownRecord("no such receipt of this account", where=receipt[:100])
        if place is None:
            raise unknown
        with self._context.store.read() as connection:
            check_kept(connection, place.window)
            # The same words for another account's: whether there is such a record is not said.
            if account_of(connection, place) != account.id:
                raise unknown
        return self._again(account, place)

    def served(
        self, account: Account, ids: Sequence[str], *, window: str | None = None
    ) -> list[ServedDocument]:
        """Return those of ``ids`` that the account was given in this window and that still stand.

        Whatever is left out was never given to it, or has changed since: a surface cannot tell.

        Args:
            ids: distinct; the result is in their order.
            window: as of `query`.

        Raises:
            NoWindowOpen, UnknownWindow, QueryRefused: as `window`.
            BackendUnavailable: the documents cannot be fetched.
        """
        live = self.window(account, window)
        found: list[ServedDocument] = []
        for at in range(0, len(ids), _IDS_AT_ONCE):
            part = ids[at : at + _IDS_AT_ONCE]
            with self._context.store.read() as connection:
                rows = served_rows(connection, live.name, account.id, part)
            mine = [name for name in part if name in rows]
            # Nothing is fetched that was not given before.
            documents = self._context.backend.fetch(account.tenant, mine) if mine else []
            for name, document in zip(mine, documents, strict=True):
                position, version = rows[name]
                index = live.index_of(account.tenant, version)
                if document is None or not index.holds(position, document, live.form):
                    continue
                found.append(
                    ServedDocument(
                        position=position,
                        version=version,
                        id=name,
                        content=document.content,
                        attributes=document.attributes,
                        columns=index.column_values_of(position),
                        vector=tuple(index.vectors[position].tolist()),
                    )
                )
        return found

    def register(self, account: Account, *, window: str | None = None) -> Registered:
        """Return the account's registration, as plain if it has none yet.

        Args:
            window: as of `query`.

        Raises:
            Conflict, WrongState: as `register_in`.
            NoWindowOpen, UnknownWindow, QueryRefused: as `window`.
        """
        return self.register_in(self.window(account, window), account)

    def register_in(self, live: OpenWindow, account: Account) -> Registered:
        """Return the account's registration in a window, as plain if it has none yet.

        Raises:
            Conflict: no slot is left.
            WrongState: the window does not register any more, or not yet.
        """
        with self._context.store.read() as connection:
            registered = find(connection, live.name, account.id)
        # However it was registered: with an anchor, it is for the account to ask by promises.
        return registered or self._registrar.register(live, account, None, None)[0]

    def check_slot(self, account: Account) -> None:
        """Check that the window which an account would ask has a slot for one more.

        Args:
            account: that need not exist yet.

        Raises:
            Conflict: no slot is left.
            NoWindowOpen: as `window`.
        """
        live = self.window(account)
        with self._context.store.read() as connection:
            self._registrar.assign_slot(connection, live)

    def register_all(self, live: OpenWindow) -> None:
        """Register every account of the tenants that a window serves, as long as there are slots.

        Args:
            live: countersigned, before its first activation.
        """
        for account in self._accounts.all():
            if account.tenant not in live.policy.tenants:
                continue
            with self._context.store.read() as connection:
                if find(connection, live.name, account.id) is not None:
                    continue
            try:
                self._registrar.register(live, account, None, None)
            except Conflict as error:
                _log.warning("window %s: not every account is registered: %s", live.name, error)
                return

    def policy(self, account: Account, *, window: str | None = None) -> Policy:
        """Return the policy of the window that a query would ask; raises as `window`.

        Args:
            window: as of `query`.
        """
        return self.window(account, window).policy

    def _rows(self, live: OpenWindow, account: Account) -> int:
        index = live.versions.in_force(account.tenant, self._context.clock())
        return (index or live.versions.latest(account.tenant)).count

    def _earlier(self, account: Account, asked: Asked, live: OpenWindow | None) -> Place | None:
        """Return the record that a retry asks for again, of any window but ``live``.

        Of that one it is found under the account's lock, by who answers.
        """
        now, name = self._context.clock(), account.id
        own = "" if live is None else live.name
        with phase("admit"), self._context.store.read() as connection:
            keyed = find_keyed(connection, name, asked)
            if keyed is not None:
                return None if keyed.window == own else keyed
            if live is not None:
                since = now - _life(live.policy)
                if find_identical(connection, own, name, asked, since) is not None:
                    return None
            # However often a request is repeated in this window, few are left in another one.
            since = now - LONGEST_LIFE
            for place, issued in find_identical_elsewhere(connection, own, name, asked, since):
                policy = Policy.parse(self._context.windows.get(place.window, connection).policy)
                if issued >= now - _life(policy):
                    return place
        return None

    def _again(self, account: Account, place: Place) -> ReceiptFile:
        """Return the receipt file of a stored record, whatever has become of its window."""
        context = self._context
        window = context.windows.get(place.window)
        with context.store.read() as connection:
            check_kept(connection, place.window)
            logged = record_at(connection, place.window, place.position)
            registered = find(connection, place.window, account.id)
            delivery = delivery_of(connection, place)
        assert logged is not None and registered is not None  # the tables refer to each other
        if delivery is None or (window.state in _LIVE and not window.handed_over):
            live = self._open_windows.get(place.window)
            return self._retrieval.repeated(live, registered, logged).answer()
        note(receipt=Receipt(place.window, place.position))
        # Of a finished window nothing is in memory, and nothing needs its fence any more.
        record, policy = logged.record, Policy.parse(window.policy)
        with context.store.read() as connection:
            index = load_index(connection, place.window, record.tenant, record.version)
        with phase("sign"):
            return receipt_file(
                logged,
                index,
                delivery,
                answer_of(policy, index, logged, delivery.rows),
                policy=policy,
                key=context.key,
                # None yet if the process ended between the record and its hand-over.
                ties=ties_that_leave(context.store, policy, index, logged, delivery),
            )


def _life(policy: Policy) -> int:
    """Return for how many milliseconds an identical request is a retry."""
    return 1000 * policy.retrieval.retry_seconds


class Generating:
    """Questions of the generation channel, and their receipts. Safe to use from several threads."""

    def __init__(
        self,
        generation: Generation,
        context: Context,
        asking: Asking,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        """Collect the parts.

        Args:
            asking: says which window an account asks.
            pause: waits for so many seconds.
        """
        self._generation = generation
        self._context = context
        self._asking = asking
        self._pause = pause
        self._generating = ThreadPoolExecutor(generation.at_once, thread_name_prefix="generate")

    def close(self) -> None:
        """Wait for the answers that are being generated; what waits for its turn stays charged."""
        self._generating.shutdown(cancel_futures=True)

    async def generate(
        self, account: Account, request: GenerationRequest, *, window: str | None = None
    ) -> GeneratedFile:
        """Answer a plain account when the answer is due; it may be that of an earlier request.

        Args:
            account: authenticated.
            request: without a counter.
            window: by name; None for the one that is open now, in which the account is registered
                if it is not yet. The answer to the same question in a window that ended is given
                again.

        Raises:
            RagauditError: as `Generation.charge`, at once; as `Generation.answer`, when it is due.
        """
        found = await anyio.to_thread.run_sync(self._take, account, request, window)
        if isinstance(found, GeneratedFile):
            return await self._due(found)
        return await self._answer(*found)

    def promise(self, account: Account, request: GenerationRequest, *, window: str) -> Promise:
        """Charge an anchored account's question and promise it, durably; as `Generation.promise`.

        Args:
            account: authenticated.
            request: with the counter that the account expects.
            window: by name.
        """
        return self._generation.promise(self._asking.window(account, window), account, request)

    async def reveal(
        self, account: Account, counter: int, nonce: bytes, *, window: str
    ) -> GeneratedFile:
        """Answer an anchored account's promised question when the answer is due.

        Args:
            account: authenticated.
            counter: of the promise.
            nonce: the account's, 32 bytes.
            window: by name.

        Raises:
            RagauditError: as `Generation.reveal`, at once; as `Generation.answer`, when it is due.
        """
        live = self._asking.window(account, window)
        charge = await anyio.to_thread.run_sync(
            self._generation.reveal, live, account, counter, nonce
        )
        return await self._answer(live, charge)

    async def _answer(self, live: OpenWindow, charge: StoredCharge) -> GeneratedFile:
        step_aside()
        # In the context of the request: its phases are counted, wherever they run.
        work = partial(copy_context().run, self._generation.answer, live, charge)
        try:
            file = await asyncio.get_running_loop().run_in_executor(self._generating, work)
        except Exception:
            await self._until(self._generation.due(live, charge))
            raise
        return await self._due(file)

    async def _due(self, file: GeneratedFile) -> GeneratedFile:
        await self._until(file.public.issued)
        note(receipt=Receipt(file.public.query.window, file.public.charge.index))
        return file

    def _take(
        self, account: Account, request: GenerationRequest, window: str | None
    ) -> tuple[OpenWindow, StoredCharge] | GeneratedFile:
        """Return what was charged, or the answer to the same question in a window that ended."""
        try:
            live = self._asking.window(account, window)
        except (NoWindowOpen, QueryRefused):
            earlier = self._earlier(account, request, window, "")
            if earlier is None:
                raise
            return earlier
        if window is None:
            earlier = self._earlier(account, request, None, live.name)
            if earlier is not None:
                return earlier
            self._asking.register_in(live, account)
        return live, self._generation.charge(live, account, request)

    def _earlier(
        self, account: Account, request: GenerationRequest, window: str | None, own: str
    ) -> GeneratedFile | None:
        """The answer that a retry asks for again, of any window, or of one by name, but ``own``."""
        context, digest = self._context, hashlib.sha256(request.encode()).digest()
        since = context.clock() - LONGEST_LIFE
        for recent in context.windows.recent():
            if window not in (None, recent.name):
                continue
            with context.store.look() as connection:
                position = find_charge(connection, recent.name, account.id, digest, since)
            if position is None:
                continue
            # Of that one it is found under the account's lock, by who charges.
            if recent.name == own:
                return None
            with context.store.read() as connection:
                check_kept(connection, recent.name)
            return self._generation.stored(Policy.parse(recent.policy), recent.name, position)
        return None

    async def _until(self, instant: int) -> None:
        while (left := instant - self._context.clock()) > 0:
            await self._pause(left / 1000)

    def receipt(self, account: Account, receipt: str) -> GeneratedFile | None:
        """Return an account's receipt file again; None if the id is of no charge.

        Args:
            receipt: its id, see `receipt_of`.

        Raises:
            UnknownRecord: of another account, or not answered yet.
            NotFound: the window's answers were deleted.
        """
        place = _place(receipt)
        if place is None:
            return None
        window, position = place.window, place.position
        with self._context.store.read() as connection:
            check_kept(connection, window)
            if charge_at(connection, window, position) is None:
                return None
            policy = Policy.parse(self._context.windows.get(window, connection).policy)
        return self._generation.file(policy.origin, account, window, position)


def receipt_of(file: GeneratedFile) -> str:
    """Return the id of a receipt: `<window>.<place of the charge in the log>`."""
    return id_of(file.public.query.window, file.public.charge.index)
