"""Both parties set up in one folder: settings, keys, the accounts of the applications."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ragaudit.cli.processes import ServiceProcess, free_port
from ragaudit.cli.up.store import Found
from ragaudit.encoding.signing import PrivateKey
from ragaudit.prover.command.set_up import set_up
from ragaudit.prover.keys import write_secret_file
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store.accounts import Accounts
from ragaudit.prover.store.database import Store
from ragaudit.serving.clock import system_clock
from ragaudit.verifier import keys as verifier_keys
from ragaudit.verifier import settings as verifier_settings
from ragaudit.verifier.service import providers
from ragaudit.verifier.service.database import Database, create_tables

__all__ = ["PROVIDER", "WINDOW", "Parties", "dispute_key_file", "prepare"]

PROVIDER = "up.example"
VERIFIER = "up.example/verifier"
WINDOW = "up"
MOST_K = 100
# One application asks for all of its users, and nobody else reaches the address.
LIMITS = {"account_per_second": 10_000, "peer_per_second": 10_000, "waiting": 1000}
_DAY = 86_400


@dataclass(frozen=True)
class Parties:
    """What was set up, nothing of it running yet.

    Attributes:
        folder: of both parties; what they write stays in it.
        keys: API key by tenant, of its application.
        more_keys: of further accounts, which were asked for.
        writes: whether what the applications write is passed on to the store.
        operator_token, auditor_token: of prover and verifier.
        verdict_key: under which the verdict must be signed, hexadecimal.
    """

    folder: Path
    prover_url: str
    verifier_url: str
    keys: Mapping[str, str] = field(repr=False)
    operator_token: str = field(repr=False)
    auditor_token: str = field(repr=False)
    verdict_key: str
    more_keys: tuple[str, ...] = field(default=(), repr=False)
    writes: bool = False

    @property
    def clock(self) -> Path:
        """The file of the shared clock."""
        return self.folder / "clock"

    @property
    def stream(self) -> Path:
        """The prover's audit stream."""
        return self.folder / "prover" / "audit.jsonl"

    def process(self, service: str, command: list[str]) -> ServiceProcess:
        """Return a service that was started, its log in the folder.

        Args:
            service: ``prover`` or ``verifier``.
            command: that runs it; settings and clock are appended.
        """
        return ServiceProcess(
            service,
            [*command, service, str(self.folder / service / f"{service}.yaml"), str(self.clock)],
            url=self.prover_url if service == "prover" else self.verifier_url,
            log=self.folder / f"{service}.log",
        )


def account(tenant: str) -> str:
    """Return the name of a tenant's application.

    Args:
        tenant: that it belongs to.
    """
    return f"{tenant}-app"


def prepare(
    folder: Path,
    found: Found,
    backend: Mapping[str, Any],
    *,
    port: int,
    host: str = "127.0.0.1",
    overrides: Mapping[str, Any] | None = None,
    accounts: int = 1,
) -> Parties:
    """Set both parties up.

    Args:
        folder: empty.
        found: what is served.
        backend: the settings' section.
        port: of the prover; 0 takes a free one.
        host: of the prover.
        overrides: sections of the prover's settings, merged into ours.
        accounts: of each tenant.

    Raises:
        RagauditError: the folder cannot be written, or settings that are malformed.
    """
    own = port or free_port()
    keys = verifier_keys.create(folder / "verifier" / "secrets", VERIFIER)
    public = {role: key for role, key in keys.public().items() if key is not None}
    listening = free_port()
    verifier = verifier_settings.write(
        folder / "verifier" / "verifier.yaml",
        {
            "name": VERIFIER,
            "data": "data",
            "secrets": "secrets",
            "tick_seconds": 0.2,
            "listen": {"port": listening},
        },
    )
    verifier_url = f"http://127.0.0.1:{listening}"
    made = set_up(folder / "prover", provider=PROVIDER, verifier=verifier_url)
    document: dict[str, Any] = {
        "provider": PROVIDER,
        "server": {"host": host, "port": own},
        "verifier": {
            "url": verifier_url,
            **{f"{role}_key": public[role] for role in ("cosigner", "verifier", "verdict")},
        },
        "backend": dict(backend),
        "embedder": {"name": "none"},
        "window": _window(found, accounts),
        "limits": LIMITS,
        "timing": {"driver_seconds": 0.1},
        "operation": {"audit_file": "audit.jsonl"},
        "surfaces": {
            "enabled": ["chroma", "qdrant"],
            "collections": {each.name: each.tenant for each in found.served},
            # Whoever has a key of this run has it from whoever may write to the store anyway.
            "writes": {"accounts": [account(each.tenant) for each in found.served]},
        },
    }
    for section, members in (overrides or {}).items():
        document[section] = {**document.get(section, {}), **members}
    made.settings.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    settings = load_settings(made.settings)
    verifier_settings.make_data_folder(verifier)
    create_tables(verifier.database_url)
    with closing(Database(verifier.database_url, system_clock)) as database:
        providers.add(database, PROVIDER, made.provider_key)
    with closing(Store.open(settings.store.url)) as store:
        register = Accounts(store)
        register.ensure_tenants(each.tenant for each in found.served)
        api_keys = {
            each.tenant: register.add(
                each.tenant, account(each.tenant), _dispute_key(folder, each.tenant)
            )
            for each in found.served
        }
        more = tuple(
            register.add(each.tenant, f"{account(each.tenant)}-{number}")
            for each in found.served
            for number in range(2, accounts + 1)
        )
    return Parties(
        folder,
        prover_url=f"http://{host}:{own}",
        verifier_url=verifier_url,
        keys=api_keys,
        operator_token=made.operator_token.read_text(encoding="ascii").strip(),
        auditor_token=verifier_keys.read_token(verifier.secrets / verifier_keys.TOKEN),
        verdict_key=public["verdict"],
        more_keys=more,
        writes=bool(settings.surfaces.writes) and settings.backend.kind == "chroma",
    )


def dispute_key_file(folder: Path, tenant: str) -> Path:
    """Return where the dispute key of a tenant's application is.

    Args:
        folder: of both parties.
        tenant: that it belongs to.
    """
    return folder / "applications" / f"{tenant}.dispute.key"


def _dispute_key(folder: Path, tenant: str) -> bytes:
    """Make the dispute key of an application, outside the prover's folder; return its public half.

    Raises:
        StoreUnavailable: its folder cannot be written.
    """
    key = PrivateKey.generate()
    write_secret_file(dispute_key_file(folder, tenant), key.seed().hex())
    return key.public.raw


def _window(found: Found, accounts: int) -> dict[str, Any]:
    """Return the window: a day, of which what nobody asks in is skipped."""
    return {
        "privacy": "none",
        "metric": found.metric,
        "query_kinds": ["vector"],
        "opens_after_seconds": _DAY,
        "length_seconds": _DAY,
        "activation_every_seconds": _DAY,
        "sampling_after_seconds": 3600,
        "release_seconds": 1,
        "top_k_max": min(MOST_K, found.least_rows - 1),
        "queries_per_account": 100_000,
        "slots": max(2, accounts * len(found.served)),
        "audit": {"mode": "B", "tenants": {"eta": "0.05"}},
    }
