"""The FastAPI application."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial

import anyio.to_thread
from fastapi import FastAPI
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.log.database import await_server
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.http import account, operator, public
from ragaudit.prover.http.questions import Questions
from ragaudit.prover.http.turns import FairTurns, Gate, known_caller
from ragaudit.prover.service import Components, Service
from ragaudit.prover.settings import Settings
from ragaudit.prover.store import tables
from ragaudit.prover.store.states import State
from ragaudit.prover.surfaces.mount import Surfaces
from ragaudit.prover.surfaces.prover_port import ServicePort
from ragaudit.prover.window.windows import Window
from ragaudit.serving.application import add_routes, application
from ragaudit.serving.bodies import BodyLimit
from ragaudit.serving.observed import Observed
from sqlalchemy import func, select

OTHER = "other"


class WindowMetrics(Collector):
    """Collects from the service; what cannot be read now is left out."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> list[Metric]:
        """Return nothing: the database is not asked before the service runs."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of now."""
        try:
            windows = self._service.windows.all()
            found = list(self._of(windows))
        except RagauditError:
            return
        yield from found

    def _of(self, windows: list[Window]) -> Iterator[Metric]:
        states = GaugeMetricFamily("ragaudit_windows", "Windows by state.", labels=["state"])
        numbers = Counter(window.state for window in windows)
        for state in State:
            states.add_metric([state.value], numbers[state])
        yield states
        opened = [window for window in windows if window.state is State.OPEN]
        yield GaugeMetricFamily(
            "ragaudit_window_documents",
            "Rows that the open windows have committed to.",
            value=sum(self._rows(window.name) for window in opened),
        )
        starts = [Policy.parse(window.policy).start for window in opened]
        now = self._service.clock() / 1000
        yield GaugeMetricFamily(
            "ragaudit_window_age_seconds",
            "Time since the start of the open window that began first; 0 without one.",
            value=max(0.0, now - min(starts)) if starts else 0.0,
        )
        yield self._budgets(opened)
        yield GaugeMetricFamily(
            "ragaudit_leader",
            "1 if this process drives the windows and signs, 0 if it only answers.",
            value=float(self._service.leadership.leads),
        )

    def _rows(self, window: str) -> int:
        live = self._service.open_windows.loaded(window)
        return 0 if live is None else live.versions.rows()

    def _budgets(self, opened: list[Window]) -> Metric:
        """Return the queries that registered accounts have left in open windows."""
        aliases = self._service.settings.operation.tenant_aliases
        left: Counter[str] = Counter(dict.fromkeys([*aliases.values(), OTHER], 0))
        table = tables.registration.c
        for window in opened:
            query = (
                select(table.tenant, func.count(), func.sum(table.counter))
                .where(table.window == window.name)
                .group_by(table.tenant)
            )
            each = Policy.parse(window.policy).queries_per_account
            with self._service.store.read() as connection:
                for tenant, accounts, used in connection.execute(query):
                    left[aliases.get(tenant, OTHER)] += each * accounts - int(used)
        shown = GaugeMetricFamily(
            "ragaudit_budget_remaining",
            "Queries that registered accounts have left in open windows.",
            labels=["tenant_alias"],
        )
        for alias, number in sorted(left.items()):
            shown.add_metric([alias], number)
        return shown


def create_app(settings: Settings, *, components: Components | None = None) -> FastAPI:
    """Return the application; the service starts and stops with its lifespan.

    Args:
        components: other parts than the prover's own, one by one.

    Raises: as `Service`.
    """
    await_server(settings.store.url, settings.store.wait_seconds)
    service = Service(settings, components or Components())
    surfaces = _surfaces(settings, service)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # In a thread: loading windows takes long, and the loop must answer signals meanwhile.
        with service.observer:
            await anyio.to_thread.run_sync(service.start)
            try:
                async with surfaces.running():
                    yield
            finally:
                await anyio.to_thread.run_sync(service.stop)

    app = application(
        "ragaudit prover",
        summary="Answers by noise-then-select, and can prove it.",
        lifespan=lifespan,
        redirect_slashes=True,
    )
    app.state.service = service
    service.observer.metrics.add(WindowMetrics(service))
    gate = Gate(settings.limits)
    # The one added last runs first: a body that is too long does not wait for a turn.
    app.add_middleware(
        FairTurns,
        gate=gate,
        keys=service.callers,
        respond=surfaces.respond,
        key=surfaces.key,
        queue=surfaces.queue,
    )
    app.add_middleware(
        BodyLimit,
        limit=lambda path: surfaces.body_limit(path, settings.server.max_body_bytes),
        respond=surfaces.respond,
        known=partial(known_caller, service.callers, surfaces.key),
    )
    app.add_middleware(Observed, observer=service.observer)
    app.front = Questions(
        app,
        routes=[*account.hot_routes(), *surfaces.asked],
        gate=gate,
        respond=surfaces.respond,
        keys=service.callers,
        observer=service.observer,
        delegating=settings.surfaces.delegation.accounts,
        sequencer=service.sequencer,
        limit=settings.server.max_body_bytes,
    )
    add_routes(
        app,
        public.router,
        account.router,
        account.queries,
        account.receipts,
        operator.router,
        operator.owners,
    )
    surfaces.mount(app)
    return app


def _surfaces(settings: Settings, service: Service) -> Surfaces:
    jwt, tokens = settings.surfaces.delegation.jwt, None
    if jwt is not None:
        from ragaudit.prover.surfaces.tokens import Tokens  # noqa: PLC0415 - loads slowly

        tokens = Tokens(jwt, service.clock)
    return Surfaces(settings.surfaces, ServicePort(service), tokens, service.sequencer.run)
