"""Open the backend and the embedder that the settings name."""

from collections.abc import Collection
from importlib.util import find_spec
from typing import Protocol, runtime_checkable

from ragaudit.embedders import registry
from ragaudit.embedders.base import NONE, Embedder
from ragaudit.embedders.endpoint import PROBES, EndpointOptions
from ragaudit.encoding.errors import MalformedSettings, UnsupportedError
from ragaudit.prover.backend_settings import BackendSettings, EmbedderSettings, EndpointSettings
from ragaudit.prover.backends.chroma import ChromaStore
from ragaudit.prover.backends.interface import Backend
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.errors import MalformedDocument
from ragaudit.prover.keys import read_secret_file
from ragaudit.prover.store.database import Store


@runtime_checkable
class Ranks(Protocol):
    """A store that applications also ask directly, and that ranks by a metric of its own."""

    def metric(self, tenant: str) -> str | None:
        """Return the metric as policies call it; None if the store does not say."""


def open_backend(settings: BackendSettings, store: Store) -> Backend:
    """Return the backend; nothing is asked of it yet.

    Args:
        settings: of the backend.
        store: the prover's own database, for the kind ``store``.

    Raises:
        MalformedSettings: a file that the settings name cannot be used, or psycopg is missing.
    """
    if settings.chroma is not None:
        return ChromaStore(settings.chroma)
    if settings.pgvector is not None:
        if find_spec("psycopg") is None:
            raise MalformedSettings(
                "psycopg is not installed",
                where="backend.kind: pgvector",
                expected="the extra 'postgres' of ragaudit-prover",
            )
        # An extra: a prover in front of another store does without the driver.
        from ragaudit.prover.backends.pgvector import PgvectorStore  # noqa: PLC0415

        return PgvectorStore(settings.pgvector)
    return StoredDocuments(store)


def check_metric(backend: Backend, metric: str) -> None:
    """Check that every tenant's store ranks as the policy says.

    An index of another metric would be proven just as well, and answer other questions.

    Args:
        backend: of any kind; one that does not say how it ranks is not asked.
        metric: the policy's.

    Raises:
        MalformedSettings: a collection or table of another metric.
    """
    if not isinstance(backend, Ranks):
        return
    for tenant in backend.tenants():
        found = backend.metric(tenant)
        if found is not None and found != metric:
            raise MalformedSettings(
                f"the store of tenant {tenant} ranks by {found}",
                where="window.metric",
                expected=f"{found}, or a collection that ranks by {metric}",
            )


def open_embedder(settings: EmbedderSettings, backend: Backend) -> Embedder:
    """Return the embedder.

    Args:
        settings: of the embedder.
        backend: says how long vectors are where the embedder is ``none``; it is asked later.

    Raises:
        MalformedSettings: an unknown name, or a key file that cannot be read.
        EmbedderUnavailable: its library or files are missing, or are not the pinned ones.
    """

    def dimension() -> int:
        found = backend.dimension()
        if found is None:
            raise MalformedDocument(
                "documents without vectors, and no embedder", expected="another embedder than none"
            )
        return found

    options = registry.EmbedderOptions(
        dimension=dimension,
        folder=settings.folder,
        endpoint=None if settings.endpoint is None else _endpoint(settings.endpoint),
    )
    try:
        return registry.load(settings.name, options)
    except UnsupportedError as error:
        raise MalformedSettings(
            error.what, where="embedder.name", expected=error.expected
        ) from None


def check_dimensions(backend: Backend, embedder: Embedder) -> None:
    """Check that texts get vectors as long as those of the store.

    Args:
        backend: whose vectors are committed, if it has vectors.
        embedder: of the queries.

    Raises:
        MalformedSettings: they could not be compared.
    """
    stored = backend.dimension()
    if stored is not None and stored != embedder.dimension:
        raise MalformedSettings(
            f"the embedder gives vectors of {embedder.dimension} entries",
            where="embedder",
            expected=f"{stored}, as the store has: the model that embedded its documents, or none",
        )


def check_vectors(
    backend: Backend, embedder: Embedder, metric: str, query_kinds: Collection[str]
) -> None:
    """Check that a window of this metric and these kinds of queries fits store and embedder.

    Raises:
        MalformedSettings: as the three checks that it makes.
    """
    check_metric(backend, metric)
    check_dimensions(backend, embedder)
    check_kinds(embedder, query_kinds)


def check_kinds(embedder: Embedder, query_kinds: Collection[str]) -> None:
    """Check that what the policy lets accounts ask can be answered.

    Args:
        embedder: of the queries.
        query_kinds: of the policy.

    Raises:
        MalformedSettings: texts may be asked, and nothing gives them a vector.
    """
    if embedder.name == NONE and "text" in query_kinds:
        raise MalformedSettings(
            "texts may be asked, and no embedder is configured",
            where="embedder.name",
            expected="an embedder, or window.query_kinds [vector]",
        )


def _endpoint(settings: EndpointSettings) -> EndpointOptions:
    return EndpointOptions(
        url=settings.url,
        model=settings.model,
        dimension=settings.dimension,
        key=None if settings.key_file is None else read_secret_file(settings.key_file),
        send_dimension=settings.send_dimension,
        prompt_template=settings.prompt_template,
        probes=settings.probes or PROBES,
        batch=settings.batch,
        timeout=settings.timeout_seconds,
        authorities=settings.ca_file,
    )
