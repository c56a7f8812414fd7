"""Answers in Chroma's shapes."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID, uuid5

from ragaudit.prover.surfaces.queries import Answer, Hit, Index

TENANT = "default_tenant"
DATABASE = "default_database"
_NAMESPACE = UUID("f3a3a2a6-3f0b-5a0e-9b57-6f1b6f5f3d11")
_SPACES = {"cosine": "cosine", "inner-product": "ip", "l2": "l2"}
_FIELDS: dict[str, Callable[[Hit], Any]] = {
    "documents": lambda hit: hit.content,
    "metadatas": lambda hit: dict(hit.metadata) or None,
    "embeddings": lambda hit: list(hit.vector),
    "distances": lambda hit: hit.distance,
    "uris": lambda hit: None,
}
_ERRORS = {
    400: "InvalidArgumentError", 401: "AuthorizationError", 403: "AuthError",
    404: "NotFoundError", 409: "UniqueConstraintError", 413: "BatchSizeExceededError",
    429: "RateLimitError", 500: "InternalError",
}  # fmt: skip


def error(text: str, status: int) -> dict[str, Any]:
    """Return the body of an error; its name decides what the client raises."""
    return {"error": _ERRORS.get(status, "ChromaError"), "message": text}


def collection_id(name: str) -> UUID:
    """Return the id that a collection has on this surface, whatever its id in the store."""
    return uuid5(_NAMESPACE, name)


def collection(name: str, index: Index) -> dict[str, Any]:
    """Return a collection.

    Args:
        name: in the settings' table.
        index: that answers for it.
    """
    return {
        "id": str(collection_id(name)),
        "name": name,
        "configuration_json": {
            "hnsw": {"space": _SPACES[index.metric]},
            "spann": None,
            # Chroma's word for "the application's own": it embeds before it asks.
            "embedding_function": {"type": "legacy"},
        },
        "schema": None,
        "metadata": None,
        "dimension": index.dimension,
        "tenant": TENANT,
        "database": DATABASE,
        "log_position": 0,
        "version": 0,
    }


def query_result(answers: Sequence[Answer], include: Sequence[str]) -> dict[str, Any]:
    """Return the rows of a query's answers; members that were not asked for are null.

    Args:
        include: of the query.
    """
    rows = [answer.hits for answer in answers]
    return {
        "ids": [[hit.id for hit in hits] for hits in rows],
        **{
            name: [[read(hit) for hit in hits] for hits in rows] if name in include else None
            for name, read in _FIELDS.items()
        },
        "include": list(include),
    }


def get_result(hits: Sequence[Hit], include: Sequence[str]) -> dict[str, Any]:
    """Return rows that were asked for by id.

    Args:
        include: of the call.
    """
    return {
        "ids": [hit.id for hit in hits],
        **{
            name: [read(hit) for hit in hits] if name in include else None
            for name, read in _FIELDS.items()
            if name != "distances"
        },
        "include": list(include),
    }
