"""Chroma over HTTP, version 2 of its REST API, as `chroma run` 1.5 serves it.

Chroma has no snapshots and no versions: a collection is read by its ids, which are listed before
and after, and what moved meanwhile is refused. Answers come in the store's order, not in ours.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

import httpx
import numpy as np
from pydantic_core import from_json
from ragaudit.circuits import metrics
from ragaudit.http import HttpClient, LongAnswer, PackedAnswer, trusted_authorities
from ragaudit.prover.backend_settings import ChromaSettings
from ragaudit.prover.backends.interface import Document, Vector, attributes_text, one_dimension
from ragaudit.prover.errors import BackendMoved, BackendUnavailable, MalformedDocument
from ragaudit.prover.keys import read_secret_file
from ragaudit.prover.sequencer import aside

MAX_ANSWER_BYTES = 2**28  # a page of 10,000 vectors of 3,072 entries does not fit; one of 500 does

_log = logging.getLogger(__name__)
WRITES = frozenset({"add", "upsert", "update", "delete"})
_SPACES = {"cosine": metrics.COSINE, "ip": metrics.INNER_PRODUCT, "l2": metrics.L2}
_IDS_AT_ONCE = 10_000
# Of the prover's token and settings, not of the application's write: nothing of it is passed on.
_OURS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
_MOVED = "the collection changed while it was read"
T = TypeVar("T")


class StoreHttp:
    """Calls to one store. Safe to use from several threads.

    Its errors go to applications: they name no address, which the log has for the operator.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        headers: dict[str, str] | None = None,
        authorities: Path | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            url: of the store, with a path if it has one.
            timeout: seconds for each phase of a call.
            headers: sent with every call; may hold a secret.
            authorities: PEM file of the certificate authorities to trust instead of the usual.
            transport: instead of the network, for tests.

        Raises:
            MalformedSettings: the file holds no certificates.
        """
        self._url = url
        self._http = HttpClient(
            url,
            timeout=timeout,
            most=MAX_ANSWER_BYTES,
            verify=trusted_authorities(authorities, "backend ca_file"),
            headers=headers,
            transport=transport,
            connects=2,
        )

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body of an answer that is 2xx or 4xx.

        Args:
            path: below the store's URL, its parts quoted.
            body: JSON; None for no body.

        Raises:
            BackendUnavailable: no answer, one of 5xx or 429, a redirection, a packed or too long
                answer.
        """
        kind = {} if body is None else {"Content-Type": "application/json"}
        try:
            answer = self._http.request(method, path, content=body, headers=kind)
        except PackedAnswer:
            self._refuse("packed answer", "sent a packed answer")
        except LongAnswer:
            self._refuse(
                f"more than {MAX_ANSWER_BYTES} bytes",
                "sent too long an answer: a smaller backend.page_rows may help",
            )
        except httpx.HTTPError as error:
            self._refuse(f"{type(error).__name__}: {error}", "cannot be reached")
        status = answer.status_code
        if status >= 500 or status == 429 or 300 <= status < 400:
            self._refuse(f"status {status} to {method} {path}", f"answered {status}")
        return status, answer.content

    def json(self, method: str, path: str, value: object | None = None) -> tuple[int, Any]:
        """Return status and JSON value of an answer that is 2xx or 4xx.

        Args:
            path: below the store's URL, its parts quoted.
            value: the body; None for no body.

        Raises:
            BackendUnavailable: as `send`, or an answer of success that is not JSON.
        """
        body = None if value is None else json.dumps(value, allow_nan=False).encode()
        status, data = self.send(method, path, body)
        try:
            # Vectors are long texts, for which the standard library takes nine times as long.
            return status, from_json(data, allow_inf_nan=False, cache_strings="keys")
        except ValueError:
            if status >= 400:
                return status, None
            self._refuse(f"no JSON to {method} {path}", "answered something else than JSON")

    def _refuse(self, detail: str, what: str) -> NoReturn:
        _log.warning("the vector store at %s: %s", self._url, detail[:300])
        raise BackendUnavailable(f"the vector store {what}") from None


@dataclass(frozen=True)
class Forwarded:
    """The store's answer to a write that was passed on.

    Attributes:
        status: HTTP status, 2xx or 4xx.
        body: as the store sent it.
    """

    status: int
    body: bytes


@dataclass(frozen=True)
class _Collection:
    id: str
    space: str | None
    dimension: int | None


class _Gone(Exception):
    """The collection's uuid is not there any more: it was deleted, perhaps made anew."""


class ChromaStore:
    """A `Backend` over collections of a Chroma server. Safe to use from several threads."""

    def __init__(
        self, settings: ChromaSettings, transport: httpx.BaseTransport | None = None
    ) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            settings: with the collection of each tenant.
            transport: instead of the network, for tests.

        Raises:
            MalformedSettings: the file of the token or of the authorities cannot be used.
        """
        headers: dict[str, str] = {}
        if settings.token_file is not None:
            token = read_secret_file(settings.token_file)
            bearer = settings.token_header == "authorization"  # noqa: S105 - a header's name
            headers[settings.token_header] = f"Bearer {token}" if bearer else token
        self._http = StoreHttp(
            settings.url,
            timeout=settings.timeout_seconds,
            headers=headers,
            authorities=settings.ca_file,
            transport=transport,
        )
        place = f"/api/v2/tenants/{quote(settings.tenant)}/databases/{quote(settings.database)}"
        self._base = f"{place}/collections"
        self._names = dict(settings.collections)
        self._compared = settings.verify_vectors
        self._known: dict[str, _Collection] = {}

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def check(self) -> None:
        """Check that the server answers and has the collection of every tenant."""
        for tenant in self.tenants():
            self._resolve(tenant)

    def tenants(self) -> list[str]:
        """Return the tenants of the settings, rising."""
        return sorted(self._names)

    def count(self, tenant: str) -> int:
        """Return N."""
        return self._with(tenant, lambda collection: self._count(tenant, collection))

    def dimension(self) -> int:
        """Return d of the stored vectors, one for all tenants.

        Raises:
            MalformedDocument: a collection is empty, or two have vectors of different lengths.
        """
        return one_dimension({name: self._resolve(name).dimension for name in self.tenants()})

    def metric(self, tenant: str) -> str | None:
        """Return the metric that the collection ranks by, as policies call it; None if unknown."""
        return self._resolve(tenant).space

    def pages(self, tenant: str, rows: int) -> Iterator[list[Document]]:
        """Return all documents with their vectors as Chroma returns them, rising by id.

        Vectors of a cosine collection are not bit for bit those that were inserted.

        Args:
            rows: the largest number of documents in a page.

        Raises:
            BackendMoved: the collection changed while it was read; try again.
            MalformedDocument: a document that cannot be committed to; ``where`` has its id.
        """
        # Resolved anew: a collection that was made anew is another one of the same name.
        collection = self._resolve(tenant)
        before = self._ids(tenant, collection)
        dimension = one_dimension({tenant: collection.dimension})
        for start in range(0, len(before), rows):
            asked = before[start : start + rows]
            try:
                found = self._get(tenant, collection, asked, vectors=True)
            except _Gone:
                raise BackendMoved(_MOVED, where=f"tenant {tenant}") from None
            if len(found) < len(asked):
                raise BackendMoved(_MOVED, where=f"tenant {tenant}")
            yield [_document(name, found[name], dimension) for name in asked]
        if self._ids(tenant, collection) != before:
            raise BackendMoved(_MOVED, where=f"tenant {tenant}")

    def fetch(self, tenant: str, ids: Sequence[str]) -> list[Document | None]:
        """Return the documents of ``ids`` in their order, None for one gone.

        With their vectors, unless ``verify_vectors`` says that nobody compares them.

        Args:
            ids: distinct, of documents that a window committed to.
        """
        if not ids:
            return []
        vectors = self._compared
        get = partial(self._get, tenant, ids=ids, vectors=vectors)
        found = aside(self._with, tenant, get)
        return [_now(name, found[name], vectors) if name in found else None for name in ids]

    def forward_write(self, tenant: str, operation: str, body: bytes) -> Forwarded:
        """Pass a write on to the tenant's collection and return the store's answer.

        Args:
            operation: one of `WRITES`.
            body: JSON, as the application sent it.

        Raises:
            BackendUnavailable: it is not known whether the store took it, or it takes none of
                ours.
        """
        if operation not in WRITES:
            raise ValueError(f"no write: {operation!r}")
        # Never sent twice: after a lost answer the store may have taken it.
        collection = self._known.get(tenant) or self._resolve(tenant)
        status, data = self._http.send("POST", f"{self._base}/{collection.id}/{operation}", body)
        if status == HTTPStatus.NOT_FOUND:
            self._known.pop(tenant, None)
        if status in _OURS:
            raise BackendUnavailable(
                f"the vector store does not let us write (status {status})",
                where=f"tenant {tenant}",
                expected="a collection that is there, and a token that may write",
            )
        return Forwarded(status, data)

    def _resolve(self, tenant: str) -> _Collection:
        """Return the collection that now has the tenant's name."""
        if tenant not in self._names:
            raise BackendUnavailable("no collection in the settings", where=f"tenant {tenant}")
        name = quote(self._names[tenant], safe="")
        status, value = self._http.json("GET", f"{self._base}/{name}")
        if status != HTTPStatus.OK:
            raise BackendUnavailable(
                f"the vector store does not show the collection (status {status})",
                where=f"tenant {tenant}",
                expected="a collection of this name, and a token that may read it",
            )
        self._known[tenant] = found = _collection(value, tenant)
        return found

    def _with(self, tenant: str, call: Callable[[_Collection], T]) -> T:
        """Return the call's result for the tenant's collection, found once more if it is gone."""
        known = self._known.get(tenant)
        if known is not None:
            try:
                return call(known)
            except _Gone:
                self._known.pop(tenant, None)
        try:
            return call(self._resolve(tenant))
        except _Gone:
            raise BackendUnavailable("the collection is gone", where=f"tenant {tenant}") from None

    def _read(self, tenant: str, method: str, path: str, body: object | None = None) -> Any:
        status, value = self._http.json(method, f"{self._base}/{path}", body)
        if status == HTTPStatus.NOT_FOUND:
            raise _Gone
        if status != HTTPStatus.OK:
            raise BackendUnavailable(
                f"the vector store refuses to be read (status {status})", where=f"tenant {tenant}"
            )
        return value

    def _count(self, tenant: str, collection: _Collection) -> int:
        value = self._read(tenant, "GET", f"{collection.id}/count")
        if type(value) is not int or value < 0:
            raise _odd(tenant)
        return value

    def _ids(self, tenant: str, collection: _Collection) -> list[str]:
        """Return all ids, rising by their UTF-8 bytes."""
        ids: list[str] = []
        try:
            count = self._count(tenant, collection)
            while True:
                body = {"include": [], "limit": _IDS_AT_ONCE, "offset": len(ids)}
                value = self._read(tenant, "POST", f"{collection.id}/get", body)
                ids += (page := _texts(value, tenant))
                if not page or len(ids) > count:
                    break
        except _Gone:
            raise BackendMoved(_MOVED, where=f"tenant {tenant}") from None
        # Pages by offset are no snapshot: what was added or deleted meanwhile shifts them.
        if len(ids) != count or len(set(ids)) != count:
            raise BackendMoved(_MOVED, where=f"tenant {tenant}")
        # Order of code points, which is that of UTF-8 bytes.
        return sorted(ids)

    def _get(
        self, tenant: str, collection: _Collection, ids: Sequence[str], *, vectors: bool = False
    ) -> dict[str, tuple[Any, Any, Any]]:
        """Return content, metadata and vector by id, of those that are there."""
        include = ["documents", "metadatas", *(["embeddings"] if vectors else [])]
        value = self._read(
            tenant, "POST", f"{collection.id}/get", {"ids": list(ids), "include": include}
        )
        names = _texts(value, tenant)
        columns = [value.get(name) for name in ("documents", "metadatas")]
        columns.append(value.get("embeddings") if vectors else [None] * len(names))
        if any(not isinstance(it, list) or len(it) != len(names) for it in columns):
            raise _odd(tenant)
        found = dict(zip(names, zip(*columns, strict=True), strict=True))
        # A store that is not asked the truth could send the same row twice, or somebody else's.
        if len(found) != len(names) or not found.keys() <= set(ids):
            raise _odd(tenant)
        return found


def _odd(tenant: str) -> BackendUnavailable:
    return BackendUnavailable(
        "the vector store answered in another form", where=f"tenant {tenant}", expected="Chroma 1.5"
    )


def _texts(value: Any, tenant: str) -> list[str]:
    names = value.get("ids") if isinstance(value, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _odd(tenant)
    return names


def _collection(value: Any, tenant: str) -> _Collection:
    match value:
        case {"id": str(name), "dimension": int() | None as dimension}:
            pass
        case _:
            raise _odd(tenant)
    configuration = value.get("configuration_json")
    space = None
    if isinstance(configuration, dict):
        # An index in memory, or Chroma's distributed one: one of the two is null.
        for kind in ("hnsw", "spann"):
            if isinstance(configuration.get(kind), dict):
                space = _SPACES.get(str(configuration[kind].get("space")))
    return _Collection(quote(name, safe=""), space, dimension)


def _document(name: str, row: tuple[Any, Any, Any], dimension: int | None) -> Document:
    content, metadata, entries = row
    where = f"document {name}"
    if not isinstance(content, str | None) or not isinstance(metadata, Mapping | None):
        raise MalformedDocument("content or metadata of another type", where=where)
    vector = None if dimension is None else _vector(entries, dimension, where)
    return Document(name, content or "", attributes_text(metadata or {}, where), vector)


def _now(name: str, row: tuple[Any, Any, Any], vectors: bool) -> Document | None:
    """Return a document as it is now; None if it became one that nobody can have committed to."""
    entries = row[2]
    # Of whatever length it has now: the caller compares it with the committed one.
    length = (len(entries) if isinstance(entries, list) else 0) if vectors else None
    try:
        return _document(name, row, length)
    except MalformedDocument:
        return None


def _vector(entries: Any, dimension: int, where: str) -> Vector:
    if not isinstance(entries, list) or len(entries) != dimension:
        raise MalformedDocument(
            "no vector, or one of another length", where=where, expected=f"{dimension} entries"
        )
    try:
        vector = np.array(entries, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        # Chroma writes NaN and infinity as null.
        raise MalformedDocument("vector is not numbers", where=where) from None
    if vector.ndim != 1 or not np.all(np.isfinite(vector)):
        raise MalformedDocument("vector with NaN or infinity", where=where)
    return vector
