"""Shadow mode: the store answers, and what a prover would have done is compared with it.

Every request goes on to the store as it came, and its answer back as it is. Nothing is logged,
nobody gets a receipt, and no verifier hears of it: nothing that this mode makes is evidence. An
answer is shown beside the exact ranking of the rows that the store held at the start.
"""

import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
from pydantic import ValidationError
from ragaudit import core
from ragaudit.circuits.metrics import scaled
from ragaudit.circuits.quantise import quantise
from ragaudit.cli.up.store import Collection
from ragaudit.encoding.errors import RagauditError
from ragaudit.http import AsyncHttpClient, HttpClient
from ragaudit.ledger.messages.policy import LARGE_B
from ragaudit.prover.backends.interface import Backend
from ragaudit.prover.surfaces.chroma import GetBody, QueryBody, queries_of, router
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

_EXAMPLES = 5
# Rounding moves an entry by a half at most, by 1/12 in the mean square. A score has the errors of
# two vectors of length B, the difference of two scores those of two such scores: its standard
# deviation is at most sqrt(4/12) / B, as a cosine. Beyond five of them it is something else (one
# pair in a million).
ROUNDING = 5 * (4 / 12) ** 0.5 / LARGE_B


@dataclass(frozen=True)
class Compared:
    """One query's two lists of ids, best first.

    Attributes:
        after_write: whether the rows may have changed since they were read.
        gap: see `Exact.gap`.
    """

    store: tuple[str, ...]
    exact: tuple[str, ...]
    after_write: bool = False
    gap: float | None = None

    @property
    def rounded(self) -> bool:
        """Whether they differ, and only by rounding."""
        return self.store != self.exact and self.gap is not None and self.gap <= ROUNDING

    @property
    def common(self) -> int:
        """Ids that stand in both."""
        return len(set(self.store) & set(self.exact))

    @property
    def words(self) -> str:
        """How they differ."""
        if self.store == self.exact:
            return "the same rows in the same order"
        rounding = ", by rounding" if self.rounded else ""
        if set(self.store) == set(self.exact):
            return f"the same rows in another order{rounding}"
        return f"{self.common} of {len(self.exact)} rows in common{rounding}"


class Exact:
    """The rows of one collection as integers, and the exact search that a window would prove."""

    def __init__(self, backend: Backend, tenant: str, metric: str, page_rows: int) -> None:
        """Read all rows.

        Args:
            backend: of stored vectors.
            tenant: whose rows.
            metric: that the store ranks by.
            page_rows: read at a time.

        Raises:
            BackendUnavailable, MalformedDocument, MalformedError: rows that a window could not
                commit to either.
        """
        documents = [row for page in backend.pages(tenant, page_rows) for row in page]
        vectors = np.array([row.vector for row in documents], dtype=np.float32)
        self.ids = tuple(row.id for row in documents)
        self._places = {name: at for at, name in enumerate(self.ids)}
        self._scorer = core.Scorer(scaled(vectors, metric, norm_bound=LARGE_B))

    def first(
        self, vector: npt.NDArray[np.float32], top_k: int, allowed: Sequence[str] | None
    ) -> tuple[str, ...]:
        """Return the ids of the best rows: by falling score, then in row order.

        Args:
            vector: of the query, float32[d].
            top_k: how many.
            allowed: ids that pass the query's filter; None for all.
        """
        scores = self._scorer.scores(quantise(vector, LARGE_B).astype(np.int16))
        if allowed is None:
            places = np.arange(len(self.ids))
        else:
            known = sorted(self._places[name] for name in allowed if name in self._places)
            places = np.array(known, dtype=np.int64)
        best = places[np.lexsort((places, -scores[places]))[:top_k]]
        return tuple(self.ids[at] for at in best)

    def gap(
        self, vector: npt.NDArray[np.float32], store: Sequence[str], exact: Sequence[str]
    ) -> float | None:
        """Return the largest difference in score between two rows that stand at the same place.

        Args:
            vector: of the query, float32[d].
            store: ids as the store returned them.
            exact: ids as `first` returned them.

        Returns:
            As a share of B², a cosine; None if there is a place that one of the
            lists lacks, or a row that was not there at the start.
        """
        if tuple(store) == tuple(exact):
            return 0.0
        if len(store) != len(exact) or not self._places.keys() >= set(store):
            return None
        scores = self._scorer.scores(quantise(vector, LARGE_B).astype(np.int16)).astype(np.int64)
        pairs = zip(store, exact, strict=True)
        steps = [abs(int(scores[self._places[a]] - scores[self._places[b]])) for a, b in pairs]
        return max(steps, default=0) / LARGE_B**2


@dataclass
class Tally:
    """What was compared, and what a prover would have refused.

    Attributes:
        rounded: answers that differ only where scores are closer than rounding can tell.
        columns: how often a filter named a column of the metadata.
        examples: the first answers that had other rows.
    """

    queries: int = 0
    same: int = 0
    reordered: int = 0
    rounded: int = 0
    in_common: int = 0
    asked_for: int = 0
    after_write: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    columns: Counter[str] = field(default_factory=Counter)
    examples: list[Compared] = field(default_factory=list)

    def add(self, compared: Compared) -> None:
        """Count a query."""
        self.queries += 1
        self.same += compared.store == compared.exact
        rows_alike = set(compared.store) == set(compared.exact)
        self.reordered += rows_alike and compared.store != compared.exact
        self.rounded += compared.rounded
        self.in_common += compared.common
        self.asked_for += len(compared.exact)
        self.after_write += compared.after_write
        if not rows_alike and len(self.examples) < _EXAMPLES:
            self.examples.append(compared)

    @property
    def so_far(self) -> str:
        """How many were compared, and how many differ."""
        return f"{self.queries} queries compared, {self.queries - self.same} differ"

    @property
    def recall(self) -> float | None:
        """The share of the exact rows that the store returned; None before any query."""
        return self.in_common / self.asked_for if self.asked_for else None

    def to_json(self) -> dict[str, Any]:
        """Return the counts; no verdict is among them, as there is none."""
        return {
            "verdict": None,
            "queries": self.queries,
            "same": self.same,
            "reordered": self.reordered,
            "other_rows": self.queries - self.same - self.reordered,
            "by_rounding": self.rounded,
            "recall": self.recall,
            "after_write": self.after_write,
            "refused": dict(self.refused),
            "filter_columns": dict(self.columns),
        }

    def lines(self) -> Iterator[str]:
        """Yield the report."""
        yield "SHADOW: the store answered. Nothing was logged, no receipt was given: no verdict."
        yield f"{self.queries} queries were compared with the exact ranking of the first rows:"
        yield f"  {self.same} with the same rows in the same order"
        yield f"  {self.reordered} with the same rows in another order"
        yield f"  {self.queries - self.same - self.reordered} with other rows"
        if self.rounded:
            yield (
                f"  {self.rounded} of those that differ do so only where scores are closer than"
                f" {ROUNDING:.1e}: rounding to integers"
            )
        if self.recall is not None:
            yield f"  {self.recall:.4f} of the exact rows were in the store's answers"
        if self.after_write:
            yield f"  {self.after_write} were asked after a write, which a window takes up later"
        for each in self.examples:
            extra = ", ".join(name for name in each.store if name not in each.exact)
            left = ", ".join(name for name in each.exact if name not in each.store)
            words = f"{extra or 'nothing'} instead of {left or 'nothing'}"
            apart = "" if each.gap is None else f" (scores {each.gap:.1e} apart)"
            yield f"  e.g. the store returned {words}{apart}"
        if self.refused:
            yield "A prover would have refused:"
            for words, number in sorted(self.refused.items()):
                yield f"  {number} x {words}"
        if self.columns:
            named = ", ".join(sorted(self.columns))
            yield f"Filters named columns that have to be declared public: {named}"


def columns_of(where: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns that a filter names.

    Args:
        where: as Chroma's clients send it.
    """
    for key, value in where.items():
        if key in {"$and", "$or"} and isinstance(value, list):
            for part in value:
                if isinstance(part, Mapping):
                    yield from columns_of(part)
        elif not key.startswith(("$", "#")):
            yield key


METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
_OF_ONE_CONNECTION = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade", "host", "content-length", "content-encoding",
    "accept-encoding",
}  # fmt: skip
_WRITES = {"add", "upsert", "update", "delete"}
_TIMEOUT = 60.0
_MOST_BYTES = 2**30  # of an answer that is passed on
Told = Callable[[str], None]


class Shadow:
    """Compares answers of one store. Safe to use from several threads."""

    def __init__(
        self, url: str, rows: Mapping[str, Exact], tally: Tally, told: Told,
        counted: Told = lambda _text: None,
    ) -> None:  # fmt: skip
        """Prepare.

        Args:
            url: of the store.
            rows: by the collection's name.
            tally: that counts.
            told: is told of every difference, in words: which collection, and what differs.
            counted: is told how many were compared so far, and how many differ.
        """
        self._counted = counted
        self._url = url
        self._rows = rows
        self._tally = tally
        self._told = told
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self._written: set[str] = set()

    def look(
        self, method: str, path: str, headers: Mapping[str, str], sent: bytes, got: bytes
    ) -> None:
        """Compare a request and its answer with what a prover would have done.

        Args:
            method, path: of the request.
            headers: of the request, sent again where the store is asked for a filter's rows.
            sent: the body.
            got: the store's answer, if it was one.
        """
        with self._lock:
            parts = path.strip("/").split("/")
            operation = parts[-1]
            if operation in _WRITES and method == "POST":
                self._written.add(parts[-2])
            try:
                refusal = _refusal(method, path, sent)
                if refusal:
                    self._tally.refused[refusal] += 1
                    if self._tally.refused[refusal] == 1:  # the sum counts them
                        self._told(f"a prover would have refused: {refusal}")
                if operation == "query" and method == "POST":
                    self._compare("/".join(parts[:-1]), parts[-2], headers, sent, got)
            except (ValueError, KeyError, TypeError, httpx.HTTPError, RagauditError) as error:
                # Of the comparison alone: the application has its answer.
                self._told(f"not compared: {type(error).__name__}")

    def _compare(
        self, base: str, identifier: str, headers: Mapping[str, str], sent: bytes, got: bytes
    ) -> None:
        body, answer = json.loads(sent), json.loads(got)
        name = self._name(base, identifier, headers)
        rows = self._rows.get(name)
        if rows is None or "ids" not in answer or body.get("where_document"):
            return
        allowed = None
        if where := body.get("where"):
            self._tally.columns.update(columns_of(where))
            allowed = self._passing(base, headers, where)
        for vector, ids in zip(body["query_embeddings"], answer["ids"], strict=True):
            top_k = int(body.get("n_results") or 10)
            query = np.array(vector, dtype=np.float32)
            exact = rows.first(query, top_k, allowed)
            gap = rows.gap(query, ids, exact)
            compared = Compared(tuple(ids), exact, identifier in self._written, gap)
            self._tally.add(compared)
            if compared.store != compared.exact:
                self._told(f"{name}: K = {top_k}: {compared.words}")
            self._counted(self._tally.so_far)

    def _name(self, base: str, identifier: str, headers: Mapping[str, str]) -> str:
        if identifier not in self._names:
            place = base.rpartition("/")[0]
            shown = self._ask("GET", f"{place}?limit=1000", headers)
            self._names |= {each["id"]: each["name"] for each in shown}
        return self._names.get(identifier, "")

    def _passing(self, base: str, headers: Mapping[str, str], where: Any) -> list[str]:
        shown = self._ask("POST", f"{base}/get", headers, {"where": where, "include": []})
        return list(shown["ids"])

    def _ask(self, method: str, path: str, headers: Mapping[str, str], body: object = None) -> Any:
        with HttpClient(self._url, timeout=_TIMEOUT) as http:
            answer = http.request(method, path, json=body, headers=_passed_on(headers))
        return answer.raise_for_status().json()


def create_shadow(
    url: str, rows: Mapping[str, Exact], tally: Tally, told: Told, counted: Told
) -> Starlette:
    """Return the application that stands before a store and changes nothing.

    Args:
        url: of the store.
        rows: of the collections that are compared, by name.
        tally: that counts.
        told, counted: as of `Shadow`.
    """
    shadow = Shadow(url, rows, tally, told, counted)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncHttpClient(url, timeout=_TIMEOUT, most=_MOST_BYTES) as client:
            app.state.client = client
            yield

    async def forward(request: Request) -> Response:
        client: AsyncHttpClient = request.app.state.client
        path, sent = request.url.path, await request.body()
        target = f"{path}?{request.url.query}" if request.url.query else path
        headers = dict(request.headers)
        try:
            answer = await client.request(
                request.method, target, content=sent, headers=_passed_on(headers)
            )
        except httpx.HTTPError:
            return Response("the store does not answer", 502)
        given = _passed_on(answer.headers)
        after = BackgroundTask(shadow.look, request.method, path, headers, sent, answer.content)
        return Response(answer.content, answer.status_code, given, background=after)

    return Starlette(routes=[Route("/{path:path}", forward, methods=METHODS)], lifespan=lifespan)


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value for name, value in headers.items() if name.lower() not in _OF_ONE_CONNECTION
    }
    return {**kept, "accept-encoding": "identity"}


def _refusal(method: str, path: str, sent: bytes) -> str:
    """Return why a prover's own surface would have refused a request; empty if it would not."""
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
    served = [route for route in router.routes if route.matches(scope)[0] is Match.FULL]
    shown = [route for route in served if getattr(route, "include_in_schema", False)]
    operation = path.rstrip("/").rpartition("/")[2]
    if not shown:
        return f"{method} of {operation[:40]!r}, which is not served"
    try:
        if operation == "query":
            body = json.loads(sent)
            body.pop("where", None)  # whether its columns are declared is not known here
            queries_of(QueryBody.model_validate(body), 1)
        elif operation == "get" and method == "POST":
            GetBody.model_validate_json(sent).checked_ids()
    except RagauditError as error:
        return f"{operation}: {error.what}"
    except ValidationError:
        return f"{operation}: a body of another form"
    return ""


def exact_rows(backend: Any, found: tuple[Collection, ...], page_rows: int) -> dict[str, Exact]:
    """Return the rows of the collections, by name.

    Args:
        backend: of the prover, in front of the store.
        found: the collections.
        page_rows: read at a time.

    Raises:
        RagauditError: as `Exact`.
    """
    return {each.name: Exact(backend, each.tenant, each.metric, page_rows) for each in found}
