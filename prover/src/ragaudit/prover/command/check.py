"""The deep check of ``ragaudit prover check``: everything that serving will need, one by one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ragaudit.embedders import registry
from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.prover.backends.stored import MIN_DOCUMENTS, StoredDocuments
from ragaudit.prover.clock import wall_milliseconds
from ragaudit.prover.errors import MalformedDocument
from ragaudit.prover.keys import load_key, read_secret_file
from ragaudit.prover.lifecycle.policy_builder import noise_of
from ragaudit.prover.settings import Settings
from ragaudit.prover.store.database import Store
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.verifier.trust import check_clocks, check_pins, checked_keys


@dataclass(frozen=True)
class Check:
    """A name, and what is wrong, None if nothing is."""

    name: str
    problem: str | None


def run_checks(settings: Settings) -> list[Check]:
    """Run every check, also after one failed."""
    checks: dict[str, Callable[[Settings], None]] = {
        "keys": _keys,
        "store": _store,
        "documents": _documents,
        "embedder": _embedder,
        "noise": _noise,
        "pins": _pins,
        "verifier": _verifier,
        "provider key": _provider_key,
    }
    return [Check(name, _problem(check, settings)) for name, check in checks.items()]


def _problem(check: Callable[[Settings], None], settings: Settings) -> str | None:
    try:
        check(settings)
    except RagauditError as error:
        return str(error)
    return None


def _keys(settings: Settings) -> None:
    load_key(settings.keys.provider_file)
    read_secret_file(settings.keys.operator_digest_file)


def _store(settings: Settings) -> None:
    store = Store.open(settings.store.url)
    try:
        store.check_writable()
        if store.file is not None and store.file.stat().st_mode & 0o077:
            raise StoreUnavailable(
                "others may read the database", where=str(store.file), expected="mode 600"
            )
    finally:
        store.close()


def _documents(settings: Settings) -> None:
    store = Store.open(settings.store.url)
    try:
        backend = StoredDocuments(store)
        tenants = backend.tenants()
        if not tenants:
            raise MalformedDocument("no tenant has documents", expected="ragaudit prover ingest")
        for tenant in tenants:
            count, least = backend.count(tenant), settings.window.top_k_max + 1
            if count < max(least, MIN_DOCUMENTS):
                raise MalformedDocument(
                    f"{count} documents", where=f"tenant {tenant}", expected=f"{least} or more"
                )
    finally:
        store.close()


def _embedder(settings: Settings) -> None:
    registry.load(settings.embedder.name).embed(["a text to embed"])


def _noise(settings: Settings) -> None:
    noise_of(settings.window)


def _verifier(settings: Settings) -> None:
    with _client(settings) as client:
        keys = checked_keys(client.keys(), settings.verifier)
        check_clocks(wall_milliseconds(), keys.time, settings.window.clock_skew_seconds)


def _provider_key(settings: Settings) -> None:
    with _client(settings) as client:
        client.check_pinned()


def _pins(settings: Settings) -> None:
    check_pins(settings.verifier)


@contextmanager
def _client(settings: Settings) -> Iterator[VerifierClient]:
    client = VerifierClient.of(settings, load_key(settings.keys.provider_file), wall_milliseconds)
    try:
        yield client
    finally:
        client.close()
