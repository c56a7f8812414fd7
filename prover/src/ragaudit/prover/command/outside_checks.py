"""Checks of what applications and operators meet: addresses, collections, end users' keys."""

from contextlib import closing

import httpx
from ragaudit.encoding.errors import MalformedSettings, UnavailableError
from ragaudit.http import HttpClient
from ragaudit.ledger.messages.beacon import fastest
from ragaudit.prover.settings import Settings
from ragaudit.prover.store.accounts import Accounts
from ragaudit.prover.store.database import Store
from ragaudit.prover.surface_settings import WriteSettings
from ragaudit.prover.surfaces.tokens import Tokens
from ragaudit.serving.clock import system_clock
from ragaudit.serving.rounds import RoundFinder
from ragaudit.serving.server import check_address

__all__ = ["check_beacon", "check_end_users", "check_listening", "check_surfaces"]

_SECONDS = 2.0
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - asked, not bound


def check_listening(settings: Settings) -> None:
    """Check that the addresses of the service and of its metrics are free, or already its own."""
    server, watched = settings.server, settings.operation
    _check_address(server.host, server.port, "healthz", '"status"')
    if watched.metrics_port is not None:
        _check_address(watched.metrics_host, watched.metrics_port, "metrics", "ragaudit_")


def _check_address(host: str, port: int, path: str, mark: str) -> None:
    try:
        check_address(host, port)
    except UnavailableError:
        # A service that runs is checked too: then it is the one that has the address.
        if not _answers(host, port, path, mark):
            raise


def _answers(host: str, port: int, path: str, mark: str) -> bool:
    name = _ANY.get(host, host)
    url = httpx.URL(scheme="http", host=name, port=port, path=f"/{path}")
    try:
        with HttpClient(timeout=_SECONDS) as http, http.stream("GET", str(url)) as answer:
            first = next(answer.iter_bytes(1 << 16), b"")
    except httpx.HTTPError:
        return False
    return answer.is_success and mark.encode() in first


def check_surfaces(settings: Settings) -> None:
    """Check that tenants and accounts which the surfaces name are there."""
    surfaces = settings.surfaces
    with closing(Store.open(settings.store.url)) as store:
        accounts = Accounts(store)
        tenants = {*accounts.tenants(), *settings.backend.tenants}
        names = {account.name for account in accounts.all()}
    for collection, tenant in sorted(surfaces.collections.items()):
        if tenant not in tenants:
            raise MalformedSettings(
                f"no tenant {tenant}",
                where=f"surfaces.collections.{collection}",
                expected=_one_of(tenants, "a tenant of the backend, or one that was ingested"),
            )
    delegation, writes = surfaces.delegation, surfaces.writes or WriteSettings()
    for where, listed in (
        ("delegation.accounts", delegation.accounts),
        ("writes.accounts", writes.accounts),
    ):
        for account in listed:
            if account not in names:
                raise MalformedSettings(
                    f"no account {account}",
                    where=f"surfaces.{where}",
                    expected="ragaudit prover account add",
                )
    for account in writes.users:
        if account not in delegation.accounts:
            raise MalformedSettings(
                f"{account} names no end users",
                where="surfaces.writes.users",
                expected="one of surfaces.delegation.accounts",
            )
    for tenant in surfaces.delegation.register_tenants:
        if tenant not in tenants:
            raise MalformedSettings(
                f"no tenant {tenant}",
                where="surfaces.delegation.register_tenants",
                expected=_one_of(tenants, "a tenant"),
            )


def _one_of(names: set[str], otherwise: str) -> str:
    return f"one of {', '.join(sorted(names))}" if names else otherwise


def check_beacon(settings: Settings) -> None:
    """Check that the beacon's sources show a round, and that windows which ask for one get it."""
    finder = RoundFinder(settings.beacon)
    with closing(finder):
        if settings.window.beacon_delay_seconds is not None or settings.beacon.sources:
            fastest()  # for what it raises
        finder.check(system_clock())


def check_end_users(settings: Settings) -> None:
    """Check that the keys of end users' tokens can be had."""
    jwt = settings.surfaces.delegation.jwt
    if jwt is not None:
        Tokens(jwt, system_clock).check()
