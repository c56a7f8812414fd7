"""What is tested: a YAML file with an endpoint, its tenants, and the files of their keys."""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.serving.settings import FileSettings, Section, read_secret_file

__all__ = ["StoreKind", "Target", "TenantSettings", "load"]

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
