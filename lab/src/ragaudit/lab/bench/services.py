"""A prover and a verifier as processes of their own, and an open window to ask.

The databases are SQLite's in a temporary folder, or two new ones of a PostgreSQL server, which are
dropped at the end.
"""

import itertools
import json
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from ragaudit.cli.corpus import Passage, candidates, distinct, load_corpus
from ragaudit.cli.processes import ServiceFailed, ServiceProcess, free_port
from ragaudit.embedders import registry
from ragaudit.embedders.base import embed_quantised
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.load import Asker
from ragaudit.lab.demo.plan import COALITION_MAX, WindowPlan, measure_pace
from ragaudit.lab.demo.services import Auditor, Operator, Services, prepare
from ragaudit.ledger.log.database import open_engine
from sqlalchemy import text
from sqlalchemy.engine import make_url

WINDOW, _TENANT = "bench", "bench"
MAX_ACCOUNTS = 256
_ASKED_OF = 300  # passages of each part of the documentation: enough for so many accounts
_OPEN_SECONDS = 300.0
_PROOF_SECONDS = 120.0
PROOF_POLL_SECONDS = 0.02
_POLL_SECONDS = 0.2
_NOT_OPEN = ("refused", "abandoned")


@dataclass(frozen=True)
class WindowSizes:
    """Sizes of a window.

    Attributes:
        rows: N, of all indexes together.
        top_k: K.
        accounts: of each tenant; all are registered as plain.
        queries: r, at most for each.
        seconds: from its start to its end.
    """

    rows: int
    top_k: int
    accounts: int
    queries: int
    seconds: int


@dataclass
class BothServices:
    """Services that run, with a window for `WindowSizes` that is open.

    Attributes:
        processes: ids by name: ``prover`` (or ``prover 1``, ...) and ``verifier``.
        provers: addresses.
        metrics: port of the first prover's.
        keys: API keys of the accounts, by tenant.
        created: instants (`time.time`) at which the window was created, and at which it opened.
    """

    services: Services
    operator: Operator
    auditor: Auditor
    sizes: WindowSizes
    provers: list[str]
    running: list[ServiceProcess]
    metrics: int
    keys: dict[str, list[str]]
    created: tuple[float, float] = (0.0, 0.0)

    @property
    def processes(self) -> dict[str, int]:
        return {each.name: each.pid for each in self.running}

    def check_alive(self) -> None:
        """Raise ServiceFailed if a service ended."""
        for each in self.running:
            each.check_alive()

    def asker(self, key: str, questions: Sequence[str], prover: str | None = None) -> Asker:
        """Return a client of one account.

        Args:
            key: of the account.
            questions: asked in turns.
            prover: its address; the first one's if None.
        """
        bodies = [
            json.dumps({"query": each, "top_k": self.sizes.top_k, "filter": "", "kind": "text"})
            for each in questions
        ]
        path = f"/v1/windows/{WINDOW}/query"
        return Asker(prover or self.provers[0], path, [each.encode() for each in bodies], key)

    def askers(self) -> list[Asker]:
        """Return a client for each account, spread over the provers.

        No two accounts ask alike: they would be a coalition to the estimate.
        """
        questions, keys = _questions(), [key for of in self.keys.values() for key in of]
        return [
            self.asker(key, questions[at :: len(keys)], url)
            for at, (key, url) in enumerate(zip(keys, itertools.cycle(self.provers), strict=False))
        ]

    def idle_askers(self) -> list[Asker]:
        """Return as many clients that ask for nothing but a sign of life."""
        urls = itertools.islice(itertools.cycle(self.provers), sum(map(len, self.keys.values())))
        return [Asker(url, "/healthz") for url in urls]

    def await_proof(self, index: int) -> None:
        """Wait for the cosigned proof of a record.

        Args:
            index: of the record in the log.

        Raises:
            ServiceFailed: there is none in time, or a service ended.
        """
        url = f"{self.provers[0]}/v1/windows/{WINDOW}/receipts/{index}/proof"
        deadline = time.monotonic() + _PROOF_SECONDS
        while httpx.get(url, trust_env=False, timeout=_PROOF_SECONDS).status_code != HTTPStatus.OK:
            self.check_alive()
            if time.monotonic() > deadline:
                raise ServiceFailed("no proof in time", where=f"entry {index}")
            time.sleep(PROOF_POLL_SECONDS)


@contextmanager
def both_services(
    sizes: WindowSizes,
    *,
    corpus: Mapping[str, Sequence[Passage]] | None = None,
    postgresql: str | None = None,
    provers: int = 1,
    overrides: dict[str, Any] | None = None,
    settings: dict[str, str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[BothServices]:
    """Start the services, open the window; end the services.

    Args:
        sizes: of the window.
        corpus: passages by tenant; of one tenant, of Python's documentation, if None.
        postgresql: URL of a server's database from which two new ones may be made; SQLite if None.
        provers: processes on the same database; more than one on PostgreSQL only.
        overrides: further settings of the window.
        settings: further settings of the services, as variables of the environment.
        tell: is told what is being done.

    Raises:
        MalformedError: several provers on SQLite.
        ServiceFailed: a service did not start, or the window did not open.
    """
    if provers > 1 and postgresql is None:
        raise MalformedError("several provers", where="--provers", expected="--postgresql")
    with ExitStack() as stack:
        environment = {**_ENVIRONMENT, **(settings or {})}
        if postgresql is not None:
            made = stack.enter_context(new_databases(postgresql, _URLS))
            environment |= {_URLS[role]: url for role, url in made.items()}
        folder = tempfile.TemporaryDirectory(prefix="ragaudit-bench-", ignore_cleanup_errors=True)
        work = Path(stack.enter_context(folder))
        tell("setting up two services")
        with ThreadPoolExecutor(2) as pool:
            services = prepare(work, pool, environment)
        corpus = corpus or {_TENANT: passages(sizes.rows)}
        services.ingest(corpus)
        running = [services.start_verifier(stack)]
        urls, metrics = [], free_port()
        for number in range(provers):
            name = "prover" if provers == 1 else f"prover {number + 1}"
            own = {"RAGAUDIT_PROVER__OPERATION__METRICS_PORT": str(metrics)} if not number else {}
            services.environment = {**environment, **own}
            process = services.start_prover(stack, None)
            process.name = name
            running.append(process)
            urls.append(process.url)
        operator = Operator(urls[0], services.operator_token)
        stack.callback(operator.close)
        auditor = Auditor(services.verifier_url, services.auditor_token)
        stack.callback(auditor.close)
        tell("opening the window")
        keys = {
            tenant: [
                operator.create_account(tenant, f"{tenant}-{n}") for n in range(sizes.accounts)
            ]
            for tenant in corpus
        }
        both = BothServices(services, operator, auditor, sizes, urls, running, metrics, keys)
        try:
            _open(both, overrides or {})
            yield both
        except ServiceFailed:
            both.check_alive()  # a service that ended explains more
            raise


_ENVIRONMENT = {
    # What one address may ask is a limit against strangers: all clients here have the same one.
    "RAGAUDIT_PROVER__LIMITS__PEER_PER_SECOND": "10000",
    "RAGAUDIT_PROVER__LIMITS__ACCOUNT_PER_SECOND": "10000",
    "RAGAUDIT_PROVER__LIMITS__WAITING": "1000",
    "RAGAUDIT_PROVER__LIMITS__WAIT_SECONDS": "60",
    "RAGAUDIT_PROVER__WINDOW__REGISTER_ACCOUNTS": "true",
}


def passages(count: int) -> list[Passage]:
    """Return passages of Python's documentation, from the beginning again if need be.

    Args:
        count: how many.
    """
    known = [each for texts in load_corpus(10**9).values() for each in texts]
    rounds = range(-(-count // len(known)))
    return [Passage(f"{n}/{each.id}", each.text) for n in rounds for each in known][:count]


def exact_search(rows: int, top_k: int) -> Callable[[], Any]:
    """Return what embeds the next question about passages and searches them exactly, with NumPy.

    Args:
        rows: how many passages.
        top_k: K.
    """
    embedder, texts = registry.load(), passages(rows)
    vectors = embedder.embed([each.text for each in texts])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    turn = itertools.cycle(candidates(texts))

    def search() -> Any:
        similarity = vectors @ embedder.embed([next(turn)])[0]
        return np.argpartition(similarity, -top_k)[-top_k:]

    return search


def _questions() -> list[str]:
    """Questions about Python's documentation, no two of them alike."""
    asked = [each for texts in load_corpus(_ASKED_OF).values() for each in candidates(texts)]
    vectors = embed_quantised(registry.load(), asked)
    return [asked[at] for at in distinct(vectors, (), MAX_ACCOUNTS)]


def window_terms(sizes: WindowSizes, tenants: int, pace: float = 1.0) -> dict[str, Any]:
    """Return what the operator asks for: a window that opens as soon as it can.

    Args:
        sizes: of the window.
        tenants: how many have so many accounts.
        pace: how many times slower this machine is than an idle one of the usual speed.
    """
    accounts = tenants * sizes.accounts
    terms: dict[str, Any] = {
        "privacy": "gaussian",
        "top_k_max": sizes.top_k, "queries_per_account": sizes.queries, "slots": accounts,
        "coalition_max": COALITION_MAX, "estimator": {"theta": "0.95"}, "retry_seconds": 0,
        # Nobody asks by promises here, and a window may be shorter than the usual margin.
        "claim_margin_seconds": 1,
    }  # fmt: skip
    opens_after = 10 + sizes.rows // 400 + accounts // 20 + accounts * sizes.queries // 20_000
    plan = WindowPlan(WINDOW, "B", round(pace * opens_after), sizes.seconds, 5, terms)
    return {**plan.overrides(1.0), "activation_every_seconds": 10**6}


def _open(both: BothServices, overrides: dict[str, Any]) -> None:
    document = window_terms(both.sizes, len(both.keys), measure_pace())
    begun = time.time()
    both.operator.create(WINDOW, document | overrides)
    deadline = time.monotonic() + _OPEN_SECONDS
    while (state := both.operator.status(WINDOW)["state"]) != "open":
        both.check_alive()
        if state in _NOT_OPEN or time.monotonic() > deadline:
            raise ServiceFailed(f"{state}: {_why_refused(both)}", where=f"window {WINDOW}")
        time.sleep(_POLL_SECONDS)
    both.created = begun, time.time()


def _why_refused(both: BothServices) -> str:
    verdict = both.auditor.verdict(WINDOW)
    checks = [] if verdict is None else verdict["checks"]
    return "; ".join(each["reason"] for each in checks if each["status"] == "FAIL")


@contextmanager
def new_databases(server: str, roles: Iterable[str]) -> Iterator[dict[str, str]]:
    """Make a new database for each role; yield their URLs by role; drop them at the end.

    Args:
        server: URL of a PostgreSQL database from which others may be made.
        roles: in lower case.
    """
    engine = open_engine(server).execution_options(isolation_level="AUTOCOMMIT")
    names = {role: f"ragaudit_bench_{secrets.token_hex(6)}_{role}" for role in roles}
    try:
        with engine.connect() as connection:
            for name in names.values():
                connection.execute(text(f"CREATE DATABASE {name}"))
        urls = {
            role: make_url(server).set(database=name).render_as_string(hide_password=False)
            for role, name in names.items()
        }
        yield urls
    finally:
        with engine.connect() as connection:
            for name in names.values():
                connection.execute(text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        engine.dispose()


_URLS = {"prover": "RAGAUDIT_PROVER__STORE__URL", "verifier": "RAGAUDIT_VERIFIER__DATABASE"}
