"""What an adapter does, and what is tested: an endpoint, its tenants, the files of their keys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal
from uuid import UUID

import numpy as np
from pydantic import Field
from pydantic_settings import SettingsConfigDict
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.lab.attacks.scope.exchange import Client, Request
from ragaudit.lab.attacks.scope.probes import Attempt, Canary, Census, Oracle, Probe, Write, near
from ragaudit.serving.settings import FileSettings, Section, read_secret_file

LEAST_KEY_BYTES = 8
StoreKind = Literal["chroma", "qdrant", "openai", "pgvector", "prover", "mcp", "dify"]


class TenantSettings(Section):
    """One tenant of the store."""

    key_file: Path | None = Field(
        default=None,
        description="of its API key, or for pgvector its connection string; without one the tenant "
        "is a victim only",
    )
    collection: str = Field(
        default="", max_length=500, description="its collection, vector store, knowledge or table"
    )
    value: str | None = Field(
        default=None,
        max_length=500,
        description="what the tenant field of its rows holds; its name if left out",
    )
    database: str = Field(default="default_database", description="of Chroma")
    chroma_tenant: str = Field(default="default_tenant", description="of Chroma")


class PgvectorColumns(Section):
    """The columns of the tables."""

    id: str = "id"
    content: str = "content"
    vector: str = "embedding"
    metadata: str = "metadata"
    setting: str | None = Field(
        default=None, description="a session setting that row-level security reads, as app.tenant"
    )


class Target(FileSettings):
    """A store and the tenants that share it."""

    service: ClassVar[str] = "SCOPE"
    model_config = SettingsConfigDict(env_prefix="RAGAUDIT_SCOPE__")

    store: StoreKind
    url: str = Field(default="", description="of the service; pgvector has connection strings")
    tenants: dict[str, TenantSettings] = Field(min_length=2)
    tenant_field: str = Field(
        default="tenant", description="the member of the metadata, or column, that says whose"
    )
    canaries: Path = Field(description="a file of `ragaudit attack canaries`")
    dimension: int | None = Field(
        default=None, ge=8, le=65536, description="of vectors; None if the system embeds texts"
    )
    top_k: int = Field(default=10, ge=1, le=10_000, description="that the store allows at least")
    key_header: str | None = Field(default=None, description="where the store's own is not used")
    key_prefix: str | None = Field(default=None, description="of the key in that header")
    window: str | None = Field(default=None, description="of a prover; its open one if left out")
    timeout_seconds: float = Field(default=30, gt=0, le=600)
    pgvector: PgvectorColumns = PgvectorColumns()

    def value(self, tenant: str) -> str:
        """Return what the tenant field of a tenant's rows holds."""
        given = self.tenants[tenant].value
        return tenant if given is None else given

    def keys(self) -> dict[str, str]:
        """Return the keys by tenant.

        Raises:
            MalformedSettings: a file is missing, others than its owner may read it, or it holds
                fewer than 8 bytes, which would stand in any text by chance.
        """
        keys = {
            name: read_secret_file(tenant.key_file)
            for name, tenant in self.tenants.items()
            if tenant.key_file is not None
        }
        for name, key in keys.items():
            if (size := len(key.encode())) < LEAST_KEY_BYTES:
                raise MalformedSettings(
                    f"a key of {size} bytes", where=f"tenants.{name}.key_file",
                    expected=f"{LEAST_KEY_BYTES} or more",
                )  # fmt: skip
        return keys


def load(path: Path) -> Target:
    """Return the target of a YAML file; relative paths are relative to its folder.

    Raises:
        MalformedSettings, MalformedError: no such file, or a member is not usable; ``where`` names
            it.
    """
    target = Target.read(path)
    folder = path.resolve().parent
    if (target.store != "pgvector") != target.url.startswith(("http://", "https://")):
        raise MalformedSettings(
            "no address" if target.store != "pgvector" else "an address",
            where=f"{path}: url",
            expected="http://host:port"
            if target.store != "pgvector"
            else "none: key_file of each tenant holds a connection string",
        )
    if not any(tenant.key_file for tenant in target.tenants.values()):
        raise MalformedSettings(
            "no tenant has a key", where=f"{path}: tenants.*.key_file", expected="one at least"
        )
    tenants = {
        name: tenant
        if tenant.key_file is None
        else tenant.model_copy(update={"key_file": folder / tenant.key_file})
        for name, tenant in target.tenants.items()
    }
    for name, tenant in tenants.items():
        if target.store not in ("prover", "mcp") and not tenant.collection:
            raise MalformedSettings(
                "missing", where=f"{path}: tenants.{name}.collection", expected="its name"
            )
    return target.model_copy(update={"tenants": tenants, "canaries": folder / target.canaries})


IDENTITY_HEADERS = (
    "x-tenant", "x-tenant-id", "tenant", "x-scope-orgid", "x-user", "x-user-id",
    "x-forwarded-user", "x-remote-user", "x-auth-request-user", "ragaudit-user",
)  # fmt: skip
"""In which proxies and applications pass on who somebody is."""


@dataclass(frozen=True)
class Scene:
    """What every adapter needs.

    Attributes:
        canaries: of each tenant that has some.
        generator: seeded: the same requests every time.
    """

    target: Target
    canaries: dict[str, list[Canary]]
    client: Client
    generator: np.random.Generator
    keys: frozenset[str] = field(default_factory=frozenset)

    def planted(self, tenant: str) -> list[Canary]:
        """Return the canaries of a tenant that are in the store."""
        return [canary for canary in self.canaries[tenant] if canary.planted]


class Store:
    """The requests of one interface; a subclass for each."""

    header: ClassVar[str] = "authorization"
    prefix: ClassVar[str] = "Bearer "
    vectors: ClassVar[bool] = False
    """Whether questions are vectors, so that canaries need some."""
    plants: ClassVar[bool] = False
    """Whether `plant` and `remove` are offered."""

    restores: ClassVar[bool] = False
    """Whether `writes` takes back all that it may have changed, without planting anew."""

    writeless: ClassVar[str] = "it has no call that writes"
    """Why `writes` is not offered, where it is not."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.target = scene.target

    def open(self) -> None:
        """Look up what requests need, as the ids of collections.

        Raises:
            UnavailableError: the store does not answer a tenant; ``where`` names the field.
        """

    def control(self, tenant: str) -> Request:
        """Return a lawful request of a tenant, whose answer has its own canaries."""
        raise NotImplementedError

    def probes(self, attacker: str, victim: str) -> list[Probe]:
        """Return what is tried with one tenant's key to see another's rows."""
        raise NotImplementedError

    def oracles(self, attacker: str, victim: str) -> list[Oracle]:
        """Return the requests whose answers could tell whether a row of another exists."""
        return []

    def writes(self, attacker: str, victim: str) -> list[Write]:
        """Return what is tried with one tenant's key to change, add or remove another's rows.

        They name canaries and rows of the test alone.
        """
        return []

    def censuses(self, attacker: str, victim: str) -> list[Census]:
        """Return the counts that another's rows could raise; the victim's key adds a row for them.

        The row is of the test alone.
        """
        return []

    def plant(self, tenant: str) -> list[Request]:
        """Return the requests that put a tenant's canaries into the store with its own key."""
        raise NotImplementedError

    def remove(self, tenant: str) -> list[Request]:
        """Return the requests that take them out again."""
        raise NotImplementedError

    def has_key(self, tenant: str) -> bool:
        """Return whether requests can be made in a tenant's name."""
        return tenant in self.scene.keys

    def near(self, tenant: str) -> list[float]:
        """Return a vector whose nearest row is a canary of a tenant, and not that canary's own."""
        return near(self.scene.planted(tenant)[0], self.scene.generator)

    def rows(self, tenant: str) -> Sequence[tuple[Canary, dict[str, str]]]:
        """Return the planted canaries of a tenant with their metadata."""
        value = self.target.value(tenant)
        return [
            (canary, canary.metadata(self.target.tenant_field, value))
            for canary in self.scene.planted(tenant)
        ]

    def forged(self, victim: str, of: Canary | None = None) -> Canary:
        """Return a row that only the attacker writes: where a canary of the victim is nearest.

        Args:
            victim: whose reader is to find it.
            of: the canary whose id it takes; None for an id of its own.
        """
        place = self.scene.planted(victim)[0] if of is None else of
        draw = self.scene.generator.bytes
        return replace(
            place,
            id=str(UUID(bytes=draw(16), version=4)) if of is None else of.id,
            marker=f"forged{draw(16).hex()}",
            tag=f"tag{draw(16).hex()}",
        )

    def disposable(self) -> str:
        """Return a name for what the victim makes for the test, to see who may take it away."""
        return f"ragaudit-{self.scene.generator.bytes(8).hex()}"

    def own_row(self, tenant: str) -> Canary | None:
        """Return a planted canary of a tenant; None if it has none."""
        known = tenant in self.scene.canaries
        return self.scene.planted(tenant)[0] if known else None

    def attempts(
        self, read: Request, row: Canary, requests: Iterable[Request], undo: Sequence[Request],
        *, loses: str = "", setup: Sequence[Request] = (),
    ) -> tuple[Attempt, ...]:  # fmt: skip
        """Return attempts to write one row, or to remove it.

        Args:
            read: of the victim, whose answer has the row.
            row: as it is written; of a removal the canary itself.
            requests: of the attacker.
            undo: of whoever may.
            loses: what the victim does not read any more once the row is overwritten or removed.
            setup: of the victim, before each attempt.
        """
        shows = "" if row.marker == loses else row.marker
        return tuple(
            Attempt(request, read, shows, loses, tuple(undo), tuple(setup)) for request in requests
        )
