"""Settings of the backends: which store, and which of its collections or tables is whose.

Secrets (a token, a connection string) are in files of their own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from ragaudit.serving.settings import Section, Url, beside

# Chroma's own rule for names, which also keeps a name inside its place in a path.
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$")]
# PostgreSQL cuts longer identifiers off without a word; a % would be a parameter to psycopg.
Identifier = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[^\x00%]+$")]


class ChromaSettings(Section):
    """A Chroma server, and the collection of each tenant.

    ``token_file`` is sent as ``x-chroma-token``, or as ``Authorization: Bearer``. With
    ``verify_vectors`` the vectors of an answer's rows are fetched with their texts, and a row whose
    vector was changed is withdrawn.
    """

    url: Url
    collections: Mapping[str, Name] = Field(min_length=1)
    tenant: Name = "default_tenant"
    database: Name = "default_database"
    token_file: Path | None = None
    token_header: Literal["x-chroma-token", "authorization"] = "x-chroma-token"  # noqa: S105 - a name
    ca_file: Path | None = None
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)
    verify_vectors: bool = True

    @model_validator(mode="after")
    def _of_one_tenant_each(self) -> Self:
        # What belongs to two tenants isolates neither.
        if len(set(self.collections.values())) < len(self.collections):
            raise ValueError("two tenants have one collection; expected one collection a tenant")
        return self


class TableSettings(Section):
    """The rows of one tenant: a table, or the rows of it that hold ``tenant_value``."""

    schema_name: Identifier = Field(default="public", alias="schema")
    table: Identifier
    id: Identifier = "id"
    content: Identifier = "content"
    vector: Identifier = "embedding"
    attributes: Identifier | None = None
    attribute_columns: tuple[Identifier, ...] = ()
    tenant_column: Identifier | None = None
    tenant_value: str | None = Field(default=None, min_length=1, max_length=512)
    metric: Literal["cosine", "inner-product", "l2"] | None = None

    @model_validator(mode="after")
    def _tenant_with_value(self) -> Self:
        if (self.tenant_column is None) != (self.tenant_value is None):
            raise ValueError("a tenant column without its value; expected both or neither")
        return self


class PgvectorSettings(Section):
    """A PostgreSQL database with pgvector, and the rows of each tenant.

    ``dsn_file`` holds one connection string of libpq, which has the password in it.
    ``verify_vectors`` is as for Chroma.
    """

    dsn_file: Path
    tables: Mapping[str, TableSettings] = Field(min_length=1)
    connect_timeout_seconds: int = Field(default=10, ge=2, le=600)
    statement_timeout_seconds: float = Field(default=60.0, gt=0, le=3600)
    pool_size: int = Field(default=8, ge=1, le=100)
    verify_vectors: bool = True

    @model_validator(mode="after")
    def _of_one_tenant_each(self) -> Self:
        seen: dict[tuple[str, str], list[TableSettings]] = {}
        for table in self.tables.values():
            seen.setdefault((table.schema_name, table.table), []).append(table)
        for shared in seen.values():
            # Rows of one table are told apart by one column, or two tenants could hold a row.
            columns = {table.tenant_column for table in shared}
            values = {table.tenant_value for table in shared}
            if len(shared) > 1 and (
                None in columns or len(columns) > 1 or len(values) < len(shared)
            ):
                raise ValueError(
                    "two tenants share rows of a table; expected one tenant_column and "
                    "a tenant_value of its own for each"
                )
        return self


class BackendSettings(Section):
    """Where the documents are: in the prover's own database (``store``), or in a vector store.

    Attributes:
        poll_seconds: how often a vector store, to which others may write, is compared with what
            open windows have committed to; 0 for never.
    """

    kind: Literal["store", "chroma", "pgvector"] = "store"
    page_rows: int = Field(default=500, ge=1, le=10_000)
    poll_seconds: float = Field(default=300.0, ge=0, le=86_400)
    chroma: ChromaSettings | None = None
    pgvector: PgvectorSettings | None = None

    @property
    def tenants(self) -> list[str]:
        """Tenants of an outside store, rising; none of the prover's own, which are ingested."""
        outside: Mapping[str, object] = {}
        if self.chroma is not None:
            outside = self.chroma.collections
        elif self.pgvector is not None:
            outside = self.pgvector.tables
        return sorted(outside)

    @model_validator(mode="after")
    def _section_of_the_kind(self) -> Self:
        for name in ("chroma", "pgvector"):
            given = getattr(self, name) is not None
            if given != (self.kind == name):
                say = "is given" if given else "is missing"
                raise ValueError(f"section {name} {say}, and the kind is {self.kind}")
        return self


def absolute_backend(folder: Path, settings: BackendSettings) -> BackendSettings:
    """Return the settings with paths relative to the folder of the settings file.

    Args:
        folder: of the settings file.
        settings: are not changed.
    """
    chroma, pgvector = settings.chroma, settings.pgvector
    if chroma is not None:
        chroma = beside(folder, chroma, "token_file", "ca_file")
    if pgvector is not None:
        pgvector = beside(folder, pgvector, "dsn_file")
    return settings.model_copy(update={"chroma": chroma, "pgvector": pgvector})
