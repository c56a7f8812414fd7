"""The surfaces in front of a store in memory: two tenants, exact search, and all that is asked."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import uvicorn
from fastapi import FastAPI
from ragaudit.encoding.errors import NotAuthenticated
from ragaudit.ledger.messages.columns import PublicColumn
from ragaudit.ledger.messages.filters import Filter
from ragaudit.prover.errors import MalformedQuery, NotServed
from ragaudit.prover.settings import SurfaceSettings
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.surfaces.mount import Surfaces
from ragaudit.prover.surfaces.queries import Answer, Completion, Forwarded, Hit, Index, Query
from ragaudit.prover.surfaces.tokens import Tokens
from ragaudit.serving.application import application

DIMENSION = 4
TOP_K_MAX = 20
COLUMNS = (
    PublicColumn("n", "integer"),
    PublicColumn("s", "string"),
    PublicColumn("w", "number"),
    PublicColumn("yes", "boolean"),
)
KEYS = {"key-acme": Account("ada", "acme"), "key-globex": Account("bob", "globex")}
ENABLED = ("openai", "chroma", "qdrant", "mcp", "dify")
COLLECTIONS = {"handbook": "acme", "manual": "globex"}
NAMES = {tenant: name for name, tenant in COLLECTIONS.items()}


def rows_of(tenant: str, count: int = 30) -> list[Hit]:
    """Rows whose ids, texts and metadata all name their tenant."""
    draw = np.random.default_rng(len(tenant))
    vectors = draw.normal(size=(count, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        Hit(
            id=f"{tenant}-{n}",
            content=f"{tenant} text {n}",
            metadata={"n": n, "s": "x" if n % 2 else "y", "w": n / 2, "yes": n % 3 == 0},
            vector=tuple(map(float, vectors[n])),
        )
        for n in range(count)
    ]


@dataclass
class MemoryPort:
    """Answers as the prover does, by exact search; counts what would be logged."""

    noised: bool = False
    dimension: int = DIMENSION
    rows: dict[str, list[Hit]] = field(
        default_factory=lambda: {tenant: rows_of(tenant) for tenant in ("acme", "globex")}
    )
    asked: list[tuple[Account, Query, str | None]] = field(default_factory=list)
    written: list[tuple[str, str, Any]] = field(default_factory=list)
    served: dict[str, dict[str, Hit]] = field(default_factory=dict)
    users: dict[str, Account] = field(default_factory=dict)
    ignored: list[tuple[str, ...]] = field(default_factory=list)

    def account(self, key: str) -> Account:
        if key not in KEYS:
            raise NotAuthenticated("unknown API key")
        return KEYS[key]

    def end_user(self, account: Account, *, register: bool) -> Account:
        if account.id not in self.users and not register:
            raise NotServed("unknown end user")
        return self.users.setdefault(account.id, account)

    def index(self, account: Account) -> Index:
        return Index(
            rows=len(self.rows[account.tenant]),
            dimension=self.dimension,
            metric="cosine",
            top_k_max=TOP_K_MAX,
            columns={column.name: column.type for column in COLUMNS},
        )

    def ask(
        self, account: Account, queries: Sequence[Query], idempotency_key: str | None
    ) -> list[Answer]:
        checked = [self._checked(query) for query in queries]
        return [
            self._answer(account, query, condition, idempotency_key)
            for query, condition in zip(queries, checked, strict=True)
        ]

    async def complete(self, account: Account, question: str, ignored: Sequence[str]) -> Completion:
        if not question:
            raise MalformedQuery("no text")
        self.ignored.append(tuple(ignored))
        return Completion("w1.7", f"{account.tenant}: {question}", 3, ended=False, time=5000)

    def fetch(self, account: Account, ids: Sequence[str]) -> list[Hit]:
        mine = self.served.get(account.id, {})
        return [replace(mine[name], score=None) for name in dict.fromkeys(ids) if name in mine]

    def forward(self, tenant: str, operation: str, body: bytes) -> Forwarded:
        self.written.append((tenant, operation, json.loads(body)))
        return Forwarded(201 if operation == "add" else 200, b"{}")

    def _checked(self, query: Query) -> Filter:
        condition = Filter.from_json(query.condition, COLUMNS)
        if query.top_k > TOP_K_MAX:
            raise MalformedQuery("K", expected=f"at most {TOP_K_MAX}")
        question = query.question
        if isinstance(question, bytes) and len(question) != 4 * self.dimension:
            raise MalformedQuery("dimension", expected=str(self.dimension))
        if not question:
            raise MalformedQuery("no text")
        return condition

    def _answer(self, account: Account, query: Query, condition: Filter, key: str | None) -> Answer:
        self.asked.append((account, query, key))
        question = query.question
        if isinstance(question, str):
            numbers = np.asarray([len(question), 1, 2, 3], "<f4")
            question = np.resize(numbers, self.dimension).tobytes()
        vector = np.frombuffer(question, "<f4").astype(float)
        vector = vector / (np.linalg.norm(vector) or 1)
        rows = [row for row in self.rows[account.tenant] if condition.passes(dict(row.metadata))]
        scored = [replace(row, score=float(vector @ row.vector)) for row in rows]
        best = sorted(scored, key=lambda row: -(row.score or 0))[: query.top_k]
        if self.noised:
            chosen = {row.id for row in best}
            best = [row for row in rows if row.id in chosen]
        self.served.setdefault(account.id, {}).update({row.id: row for row in best})
        return Answer(f"w1.{len(self.asked) - 1}", tuple(best))


def surface_app(port: MemoryPort, *, tokens: Tokens | None = None, **settings: Any) -> FastAPI:
    """The application of all surfaces, with nothing else of the prover's."""
    writers = {"accounts": [each.name for each in KEYS.values()]}
    given = {"enabled": ENABLED, "collections": COLLECTIONS, "writes": writers, **settings}
    surfaces = Surfaces(SurfaceSettings.model_validate(given), port, tokens)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with surfaces.running():
            yield

    app = application("surfaces", lifespan=lifespan, redirect_slashes=True)
    surfaces.mount(app)
    return app


@contextmanager
def serving(app: Any, lifespan: Literal["auto", "off"] = "auto") -> Iterator[int]:
    """Serve an application on a port of this machine.

    Args:
        lifespan: off for one whose life is a fixture's.
    """
    # With the protocol named, or asyncio leaves Nagle's algorithm on: 40 ms an answer.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, access_log=False, ws="none", lifespan=lifespan)
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True
    )
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < deadline and thread.is_alive()
        time.sleep(0.01)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()
