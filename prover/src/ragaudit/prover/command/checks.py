"""``ragaudit prover check``: every mistake of a set-up that shows before a window is made.

Each check is independent of the others, so that one call finds all that is wrong; nothing is
changed. A fault says what, where and what would be right, as every error of this software.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from pathlib import Path

import httpx
from ragaudit.embedders.base import NONE
from ragaudit.encoding.errors import (
    MalformedSettings,
    RagauditError,
    RefusedError,
    UnavailableError,
)
from ragaudit.encoding.signing import PrivateKey
from ragaudit.http import HttpClient, OddAnswer, trusted_authorities
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.messages.beacon import fastest
from ragaudit.ledger.messages.shown import ShownKeys
from ragaudit.prover.answering.generator import Generator
from ragaudit.prover.backends.interface import Backend, check_servable
from ragaudit.prover.backends.opening import (
    check_dimensions,
    check_kinds,
    check_metric,
    open_backend,
    open_embedder,
)
from ragaudit.prover.keys import load_digest, load_key
from ragaudit.prover.lifecycle.cosigning import read_stamp_roots
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder, noise_of, third_party_members
from ragaudit.prover.settings import (
    CosignerSettings,
    Settings,
    StampSettings,
    WriteSettings,
    read_trust,
)
from ragaudit.prover.store.accounts import Accounts
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.fences import check_space
from ragaudit.prover.surfaces.tokens import Tokens
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.verifier.connection import check_clocks, check_pins, checked_keys
from ragaudit.prover.work import JOBS
from ragaudit.serving.clock import system_clock
from ragaudit.serving.jobs.opening import check_jobs
from ragaudit.serving.observed import Observer
from ragaudit.serving.rounds import RoundFinder
from ragaudit.serving.server import check_address
from ragaudit.serving.settings import STANDARD_OUTPUT

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


_MOST_BYTES = 2**16


def check_cosigners(settings: Settings) -> None:
    """Check that further cosigners can be named as windows ask, and that each one answers."""
    section = settings.cosigners
    trust = read_trust(section)
    third_party_members(settings.window, trust)  # for what it raises
    if trust is not None:
        urls = [each.url for each in trust.cosigners if each.url is not None]
        _check_answering(urls, section, "cosigners")


def check_time_stamps(settings: Settings) -> None:
    """Check that authorities can be asked where windows want stamps, and that each one answers."""
    section = settings.time_stamps
    if section.authorities:
        read_stamp_roots(section)
    elif settings.window.time_stamps is not None:
        raise MalformedSettings(
            "no authority to ask", where="window.time_stamps", expected="time_stamps.authorities"
        )
    _check_answering(section.authorities, section, "time_stamps")


def _check_answering(
    urls: Iterable[str], section: CosignerSettings | StampSettings, name: str
) -> None:
    """Check that there is an HTTP service at each URL; what it says to a GET means nothing."""
    verify = trusted_authorities(section.ca_file, f"{name}.ca_file")
    for url in urls:
        with HttpClient(
            url,
            timeout=section.timeout_seconds,
            most=_MOST_BYTES,
            verify=verify,
            proxy=section.proxy,
        ) as service:
            try:
                with suppress(OddAnswer):
                    service.request("GET", "")
            except httpx.HTTPError as error:
                raise UnavailableError(
                    f"cannot be reached: {type(error).__name__}",
                    where=f"{name}: {url}",
                    expected="a service that answers",
                ) from None


NAMED = 5
Found = dict[str, RagauditError | None]


class NobodyDisputes(RefusedError):
    """Accounts without a dispute key: a warning, since a window can do without."""


def run_checks(settings: Settings) -> Found:
    """Run every check of what serving will need, also after one failed; change nothing.

    Returns:
        The fault by the name of the check, None if there is none.
    """
    return {name: _fault(name, check, settings) for name, check in CHECKS.items()}


def said(fault: RagauditError | None) -> str:
    """Return what a check found, in one line for people."""
    if fault is None:
        return "good"
    return f"warning: {fault}" if isinstance(fault, NobodyDisputes) else str(fault)


def explained(fault: RagauditError | None) -> str | dict[str, str]:
    """Return a fault for a program: what, where and expected; ``good`` if there is none.

    Args:
        fault: that a check found; of one that is a warning only, ``severity`` says so.
    """
    if fault is None:
        return "good"
    said = {"what": fault.what, "where": fault.where, "expected": fault.expected}
    return said | {"severity": "warning"} if isinstance(fault, NobodyDisputes) else said


def _fault(
    name: str, check: Callable[[Settings], object], settings: Settings
) -> RagauditError | None:
    try:
        check(settings)
    except RagauditError as error:
        # Only ours: a fault of this program is not a fault of the settings.
        where, expected = _OTHERWISE[name]
        # Errors that applications see too name no place of the settings; an operator needs one.
        error.where, error.expected = error.where or where, error.expected or expected
        return error
    return None


def _check_keys(settings: Settings) -> None:
    load_key(settings.keys.provider_file)
    load_digest(settings.keys.operator_digest_file)


def _check_permissions(settings: Settings) -> None:
    """What a service must be able to write, and nobody else must be able to read."""
    # What is missing of the path is made at the start.
    folder = settings.store.fence_folder.absolute()
    _check_folder(next(each for each in (folder, *folder.parents) if each.exists()))
    stream = settings.operation.audit_file
    if stream is not None and stream != STANDARD_OUTPUT:
        _check_writable(stream if stream.exists() else stream.parent)
    with _store(settings) as store:
        # Whoever reads the database can open every commitment of its windows.
        if store.file is not None and store.file.stat().st_mode & 0o077:
            raise StoreUnavailable(
                "others may read the database", where=str(store.file), expected="mode 600"
            )


def _check_folder(path: Path) -> None:
    if not path.is_dir():
        raise StoreUnavailable("not a folder", where=str(path), expected="a folder of its own")
    _check_writable(path)


def _check_writable(path: os.PathLike[str]) -> None:
    # Asked, not tried: a check leaves nothing behind.
    if not os.access(path, os.W_OK):
        raise StoreUnavailable(
            "cannot be written by this user", where=str(path), expected="a folder of its own"
        )


def _check_store(settings: Settings) -> None:
    with _store(settings) as store:
        store.check_writable()


def _check_disk(settings: Settings) -> None:
    with _store(settings) as store:
        check_space(store.file, settings.store.free_bytes_min)
    check_space(settings.store.fence_folder, settings.store.free_bytes_min)


def _check_backend(settings: Settings) -> None:
    with _backend(settings) as backend:
        backend.check()


def _check_documents(settings: Settings) -> None:
    """Every tenant's collection or table is there, with enough rows."""
    with _backend(settings) as backend:
        check_servable(backend, settings.window.top_k_max)


def _check_dimension(settings: Settings) -> None:
    with _backend(settings) as backend:
        embedder = open_embedder(settings.embedder, backend)
        check_dimensions(backend, embedder)


def _check_metric(settings: Settings) -> None:
    with _backend(settings) as backend:
        check_metric(backend, settings.window.metric)


def _check_embedder(settings: Settings) -> None:
    with _backend(settings) as backend:
        embedder = open_embedder(settings.embedder, backend)
        check_kinds(embedder, settings.window.query_kinds)
        if embedder.name != NONE:
            embedder.embed(["a text to embed"])


def _check_noise(settings: Settings) -> None:
    """There is a noise that keeps the promise, and where both are named, it does."""
    window = settings.window
    noise_of(window)
    if window.privacy == "none" or window.sigma is None or window.epsilon_acc is None:
        return
    kept = noise_of(window.model_copy(update={"epsilon_acc": None}))[1]
    # The verifier would refuse the window. Who names a sigma alone has the default beside it.
    if Decimal(kept) > Decimal(window.epsilon_acc):
        raise MalformedSettings(
            f"sigma {window.sigma} keeps an epsilon_acc of {kept}, not {window.epsilon_acc}",
            where="window.sigma",
            expected="a larger sigma, or epsilon_acc: null, so that it follows from sigma",
        )


def _check_policy(settings: Settings) -> None:
    """No member of the window's settings contradicts another: such a policy can be made."""
    provider, log, verifier, verdict = (PrivateKey.generate().public for _ in range(4))
    cosigner = SigningKey("check.example", COSIGNATURE_V1, PrivateKey.generate()).verifier_key
    shown = ShownKeys(
        arbiter=None,
        name="check.example",
        cosigner=cosigner,
        verifier=verifier,
        verdict=verdict,
        time=0,
    )
    # What else a window asks for are things of others, which have checks of their own.
    without = {"cosigners": None, "time_stamps": None}
    manifest = None
    if settings.generator is not None:
        # Its files are read; the service is not asked.
        with closing(Generator(settings.generator)) as generator:
            manifest = generator.manifest
    PolicyBuilder(settings.provider, provider).build(
        window="check",
        log_key=log,
        settings=settings.window.model_copy(update=without),
        tenants=["check"],
        dimension=1,
        verifier=shown,
        previous_checkpoint=None,
        now=system_clock(),
        generator=manifest,
    )


def _check_watching(settings: Settings) -> None:
    Observer(settings.operation, service="ragaudit-prover", name=settings.provider)


def _check_jobs(settings: Settings) -> None:
    check_jobs(settings.jobs, JOBS, settings.store.url)


def _check_verifier(settings: Settings) -> None:
    with closing(_client(settings)) as client:
        # The pins as well: a wrong key is found here, not when the first window is created.
        checked_keys(client.keys(), settings.verifier)


def _check_clocks(settings: Settings) -> None:
    with closing(_client(settings)) as client:
        check_clocks(system_clock(), client.keys().time, settings.window.clock_skew_seconds)


def _check_provider_key(settings: Settings) -> None:
    with closing(_client(settings)) as client:
        client.check_pinned()


def _client(settings: Settings) -> VerifierClient:
    return VerifierClient.of(settings, load_key(settings.keys.provider_file), system_clock)


@contextmanager
def _store(settings: Settings) -> Iterator[Store]:
    with closing(Store.open(settings.store.url)) as store:
        yield store


@contextmanager
def _backend(settings: Settings) -> Iterator[Backend]:
    with _store(settings) as store, closing(open_backend(settings.backend, store)) as backend:
        yield backend


def _check_disputes(settings: Settings) -> None:
    """Whoever is registered by somebody else can have a false answer judged."""
    # Others register by themselves, with a key of their own.
    if not (settings.window.register_accounts or settings.surfaces.enabled):
        return
    with _store(settings) as store:
        served = set(settings.backend.tenants or Accounts(store).tenants())
        # End users have the key of the account that names them.
        mute = [
            each.name
            for each in Accounts(store).all()
            if each.tenant in served and each.dispute_key is None and each.user is None
        ]
    if mute:
        more = f" and {len(mute) - NAMED} more" if len(mute) > NAMED else ""
        raise NobodyDisputes(
            f"nobody could dispute the answers of {', '.join(mute[:NAMED])}{more}",
            where="accounts",
            expected="a public dispute key of each: ragaudit receipt key, or account dispute-key",
        )


CHECKS: Mapping[str, Callable[[Settings], object]] = {
    "keys": _check_keys,
    "permissions": _check_permissions,
    "store": _check_store,
    "disk": _check_disk,
    "backend": _check_backend,
    "documents": _check_documents,
    "dimension": _check_dimension,
    "metric": _check_metric,
    "embedder": _check_embedder,
    "noise": _check_noise,
    "policy": _check_policy,
    "operation": _check_watching,
    "jobs": _check_jobs,
    "listening": check_listening,
    "surfaces": check_surfaces,
    "end users": check_end_users,
    "disputes": _check_disputes,
    "beacon": check_beacon,
    "pins": lambda it: check_pins(it.verifier),
    "verifier": _check_verifier,
    "clocks": _check_clocks,
    "cosigners": check_cosigners,
    "time stamps": check_time_stamps,
    "provider key": _check_provider_key,
}
"""By name, in the order in which they are shown."""

# Of faults that say nothing of what would be right: mostly, what is asked does not answer.
_DATABASE = ("store.url", "a database that answers")
_VERIFIER = ("verifier.url", "a verifier that answers")
_STORE = ("backend", "a store that answers as the settings say")
_EMBEDDER = ("embedder", "a model that embeds texts")
_OTHERWISE: Mapping[str, tuple[str, str]] = {
    "keys": ("keys", "the files that ragaudit prover init makes"),
    "permissions": _DATABASE,
    "store": _DATABASE,
    "disk": _DATABASE,
    "backend": _STORE,
    "documents": _STORE,
    "dimension": _STORE,
    "metric": _STORE,
    "embedder": _EMBEDDER,
    "noise": ("window", "noise that keeps the promise"),
    "policy": ("window", "members that make a policy together"),
    "operation": ("operation", "what the service can open"),
    "jobs": ("jobs", "process, or a queue and workers"),
    "listening": ("server", "a free address of this machine"),
    "surfaces": ("surfaces", "tenants and accounts that are there"),
    "end users": ("surfaces.delegation.jwt", "keys of tokens"),
    "disputes": _DATABASE,
    "beacon": ("beacon.sources", "sources that show the chain's rounds"),
    "pins": ("verifier", "the keys that the regulator published"),
    "verifier": _VERIFIER,
    "clocks": ("window.clock_skew_seconds", "a verifier that answers, and clocks that agree"),
    "cosigners": ("cosigners.policy_file", "a tlog-policy file of witnesses with URLs"),
    "time stamps": ("time_stamps", "authorities that answer, and their roots"),
    "provider key": _VERIFIER,
}
