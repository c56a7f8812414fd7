"""What an account may ask: its registration, its queries."""

from collections.abc import Callable, Coroutine
from functools import cached_property, partial
from inspect import get_annotations
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Header, Path, Response, status
from fastapi import Request as HttpRequest
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials
from fastapi.security.utils import get_authorization_scheme_param
from pydantic import TypeAdapter, ValidationError
from ragaudit.encoding.errors import MalformedRequest
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import GenerationRequest
from ragaudit.ledger.messages.requests import Request
from ragaudit.ledger.messages.shown import RegistrationEntry, ShownAccount
from ragaudit.prover.http import requests
from ragaudit.prover.http.public import WindowName
from ragaudit.prover.http.requests import (
    AccountDependency,
    ActingDependency,
    AskBody,
    DisputeKeyBody,
    PromiseBody,
    QueryBody,
    RegistrationBody,
    RevealBody,
    ServiceDependency,
)
from ragaudit.prover.service import Service
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.surfaces.caller import bearer
from ragaudit.prover.window.open_window import OpenWindow
from ragaudit.prover.window.records import entry_at
from ragaudit.prover.window.registrations import Registered, find
from ragaudit.serving.bodies import StrictRoute, json_value, signed_json
from ragaudit.serving.problems import documented, handled
from starlette.concurrency import run_in_threadpool

_PREFIX = "/v1/windows/{window}"
_SHOWN: dict[str, Any] = {"tags": ["account"], "responses": documented("4XX", "5XX")}


class HotRoute(APIRoute):
    """A route of an endpoint with ``service``, ``account``, ``window`` and ``body``.

    It may also have ``idempotency_key``, the header of that name.
    """

    @cached_property
    def _adapters(self) -> tuple[TypeAdapter[Any], TypeAdapter[Any], bool]:
        """Readers of window and body, and whether there may be a key.

        Built once for a route: building them takes longer than a query's parsing.
        """
        annotated = get_annotations(self.endpoint, eval_str=True)
        window, body = (TypeAdapter(annotated[name]) for name in ("window", "body"))
        return window, body, "idempotency_key" in annotated

    key = staticmethod(bearer)
    refused = staticmethod(handled)

    def work(self, request: HttpRequest, content: bytes) -> Response:
        """Return the answer to a request, whose body was read.

        Raises: whatever is wrong with it, or with the service.
        """
        (window, body, keyed), service = self._adapters, request.app.state.service
        # First: who has no key learns nothing of windows, and costs no parsing.
        caller = requests.account(service, _credentials(request))
        # A key that names end users is not itself charged for what they ask.
        account = requests.acting(request, caller)
        more = {"idempotency_key": _key(request)} if keyed else {}
        answer: Response = self.endpoint(
            **more,
            service=service,
            account=account,
            window=_read(window, request.path_params["window"], "path", "window"),
            body=_read(body, _value(request, content), "body"),
        )
        return answer

    def get_route_handler(self) -> Callable[[HttpRequest], Coroutine[Any, Any, Response]]:
        """Return the handler."""

        async def handle(request: HttpRequest) -> Response:
            return await run_in_threadpool(self.work, request, await request.body())

        return handle


def _credentials(request: HttpRequest) -> HTTPAuthorizationCredentials | None:
    scheme, token = get_authorization_scheme_param(request.headers.get("authorization"))
    if scheme.lower() != "bearer" or not token:
        return None
    return HTTPAuthorizationCredentials(scheme=scheme, credentials=token)


def _key(request: HttpRequest) -> str | None:
    keys = request.headers.getlist("idempotency-key")
    # Two of them would be two answers; whose form is wrong, the service says.
    if len(keys) > 1:
        raise MalformedRequest("several keys", where="Idempotency-Key", expected="one")
    return keys[0] if keys else None


def _value(request: HttpRequest, content: bytes) -> Any:
    """Return the body's JSON value; what does not say that it is JSON is not read as such."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return json_value(content) if content else None
    return content or None


def _read(adapter: TypeAdapter[Any], value: Any, *where: str) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise RequestValidationError(
            [{**fault, "loc": (*where, *fault["loc"])} for fault in faults]
        ) from None


IdempotencyKey = Annotated[str | None, Header(max_length=255)]
ReceiptId = Annotated[str, Path(max_length=100)]
receipts = APIRouter(route_class=StrictRoute, **_SHOWN)
router = APIRouter(prefix=_PREFIX, route_class=StrictRoute, **_SHOWN)
queries = APIRouter(prefix=_PREFIX, route_class=HotRoute, **_SHOWN)


@router.get("/account", operation_id="getAccount")
def get_account(
    service: ServiceDependency, account: ActingDependency, window: WindowName
) -> dict[str, Any]:
    """Show the account in this window: pseudonym, slot, remaining queries, registration."""
    live = service.open_windows.get(window)
    with service.store.read() as connection:
        registered = find(connection, window, account.id)
    return _account(service, live, account, registered)


@router.get("/account/count", operation_id="getAccountProof")
def get_account_proof(
    service: ServiceDependency, account: ActingDependency, window: WindowName
) -> Response:
    """Prove how many records the account has in a closed window, and which, or that it has none."""
    return signed_json(service.open_windows.account_proof(window, account).encode())


@router.post("/registration", operation_id="register", status_code=status.HTTP_201_CREATED)
def register(
    service: ServiceDependency,
    account: ActingDependency,
    window: WindowName,
    body: RegistrationBody,
    response: Response,
) -> dict[str, Any]:
    """Register the account in the window's log, with the anchor and the dispute key it brings."""
    live = service.open_windows.get(window)
    anchor = None if body.anchor is None else hex_decode(body.anchor)
    dispute_key = None if body.dispute_key is None else hex_decode(body.dispute_key)
    registered, new = service.registrar.register(live, account, anchor, dispute_key)
    if not new:
        response.status_code = status.HTTP_200_OK
    return _account(service, live, account, registered)


@receipts.put("/v1/dispute-key", operation_id="keepDisputeKey")
def keep_dispute_key(
    service: ServiceDependency, account: ActingDependency, body: DisputeKeyBody
) -> dict[str, str]:
    """Keep the account's public dispute key, for windows that register it from now on."""
    service.accounts.keep_dispute_key(account, hex_decode(body.dispute_key))
    return {**account.to_json(), "dispute_key": body.dispute_key}


@queries.post("/query", operation_id="query")
def query(
    service: ServiceDependency,
    account: AccountDependency,
    window: WindowName,
    body: QueryBody,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Answer a plain account's query; the body is its receipt file, canonical JSON.

    With the key of an earlier request, or identical to one within the policy's retry_seconds, it is
    that one's file again.
    """
    request = _request(service.policy_of(window), body, None)
    file = service.asking.query(account, request, window=window, idempotency_key=idempotency_key)
    return signed_json(file.encode())


@router.post("/ask", operation_id="ask")
async def ask(
    service: ServiceDependency, account: ActingDependency, window: WindowName, body: AskBody
) -> Response:
    """Generate an answer for a plain account; the body is the receipt file, canonical JSON.

    It leaves at a fixed time after the question was charged. The same question within the policy's
    terms is not charged again, and has the same answer. An anchored account gives its counter; the
    body is then the promise of the charge, which has its answer at .../ask/reveal.
    """
    request = GenerationRequest(body.query, body.filter, body.counter)
    if body.counter is not None:
        promise = partial(service.generating.promise, account, request, window=window)
        return signed_json((await anyio.to_thread.run_sync(promise)).encode())
    file = await service.generating.generate(account, request, window=window)
    return signed_json(file.encode())


@router.post("/ask/reveal", operation_id="revealAsked")
async def reveal_asked(
    service: ServiceDependency, account: ActingDependency, window: WindowName, body: RevealBody
) -> Response:
    """Generate the answer to a promised question; the receipt file, the same each time."""
    nonce = hex_decode(body.nonce)
    file = await service.generating.reveal(account, body.counter, nonce, window=window)
    return signed_json(file.encode())


@receipts.get("/v1/receipts/{receipt}", operation_id="getReceipt")
def get_receipt(
    service: ServiceDependency, account: ActingDependency, receipt: ReceiptId
) -> Response:
    """Return one of the account's own receipt files again: `<window>.<place in the log>`."""
    generated = service.generating.receipt(account, receipt)
    return signed_json((generated or service.asking.receipt(account, receipt)).encode())


@queries.post("/promise", operation_id="promise")
def promise(
    service: ServiceDependency, account: AccountDependency, window: WindowName, body: PromiseBody
) -> Response:
    """Promise an anchored account what will be logged once it reveals its nonce."""
    live = service.open_window(window, account)
    promised = service.promises.promise(live, account, _request(live.policy, body, body.counter))
    return signed_json(promised.encode())


@queries.post("/reveal", operation_id="reveal")
def reveal(
    service: ServiceDependency, account: AccountDependency, window: WindowName, body: RevealBody
) -> Response:
    """Answer a promised query with its receipt file; the same file again when repeated."""
    live = service.open_window(window, account)
    nonce = hex_decode(body.nonce)
    return signed_json(service.promises.reveal(live, account, body.counter, nonce).encode())


def hot_routes() -> list[HotRoute]:
    """Return the routes to query, promise and reveal."""
    return [each for each in queries.routes if isinstance(each, HotRoute)]


def _request(policy: Policy, body: QueryBody, counter: int | None) -> Request:
    """Return the request in the form of its window; whether the window takes it is judged later."""
    asked = body.asked
    if isinstance(asked, str):
        return Request(asked, body.top_k, counter, body.filter, kind="text")
    return Request("", body.top_k, counter, body.filter, asked, "vector")


def _account(
    service: Service, live: OpenWindow, account: Account, registered: Registered | None
) -> dict[str, Any]:
    counter = 0 if registered is None else registered.counter
    return ShownAccount(
        tenant=account.tenant,
        pseudonym=live.pseudonym_of(account.name, account.user),
        slot=None if registered is None else registered.slot,
        anchor=None if registered is None else registered.anchor,
        dispute_key=None if registered is None else registered.dispute_key,
        counter=counter,
        remaining=live.policy.queries_per_account - counter,
        registration=None
        if registered is None
        else _registration(service, live, registered.position),
    ).to_json()


def _registration(service: Service, live: OpenWindow, position: int) -> RegistrationEntry:
    with service.store.read() as connection:
        entry = entry_at(connection, live.name, position)
    proof = live.log.checkpoints.tlog_proof(position)
    text = None if proof is None else proof.encode().decode("utf-8")
    return RegistrationEntry(position, entry.salt, entry.body, text)
