"""Answers in Qdrant's shapes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.prover.surface_settings import QdrantSettings
from ragaudit.prover.surfaces.qdrant.bodies import Payload
from ragaudit.prover.surfaces.queries import Hit, Index

VERSION = "1.20.0"
_DISTANCES = {"cosine": "Cosine", "inner-product": "Dot", "l2": "Euclid"}
# What Qdrant calls an unsigned integer; other ids are texts, UUIDs or not.
_INTEGER = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
_INTEGERS = 2**64


def error(text: str, status: int) -> dict[str, Any]:
    """Return the body of an error."""
    return {"status": {"error": text}, "time": 0.0}


def result(value: Any) -> dict[str, Any]:
    """Return an answer's body.

    Args:
        value: what was asked for.
    """
    return {"usage": None, "time": 0.0, "status": "ok", "result": value}


def collection(index: Index) -> dict[str, Any]:
    """Return what a client may know of a collection: size and kind of its vectors, its rows."""
    return {
        "status": "green",
        "optimizer_status": "ok",
        "indexed_vectors_count": index.rows,
        "points_count": index.rows,
        "segments_count": 1,
        "config": {
            "params": {
                "vectors": {"size": index.dimension, "distance": _DISTANCES[index.metric]},
                "shard_number": 1,
                "replication_factor": 1,
                "write_consistency_factor": 1,
                "on_disk_payload": False,
            },
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 1,
                "flush_interval_sec": 5,
            },
            "wal_config": None,
            "quantization_config": None,
        },
        "payload_schema": {},
    }


def point_id(identifier: str) -> int | str:
    """Return a row's id as a point's: a number if it is written as Qdrant writes one."""
    if _INTEGER.fullmatch(identifier) and int(identifier) < _INTEGERS:
        return int(identifier)
    return identifier


def row_id(identifier: int | str) -> str:
    """Return a point's id as a row's."""
    return str(identifier)


def scored(
    hits: Sequence[Hit], payload: Payload, vector: Any, settings: QdrantSettings
) -> list[dict[str, Any]]:
    """Return rows as scored points.

    Args:
        payload, vector: what of each is asked for.
    """
    return [
        {**point(hit, payload, vector, settings), "version": 0, "score": hit.similarity}
        for hit in hits
    ]


def point(hit: Hit, payload: Payload, vector: Any, settings: QdrantSettings) -> dict[str, Any]:
    """Return a row as a point.

    Args:
        payload, vector: what of it is asked for.

    Raises:
        UnsupportedError: parts of nested members, or a named vector.
    """
    if isinstance(vector, list) and vector:
        raise UnsupportedError("a named vector", where="with_vector", expected="true or false")
    shown: dict[str, Any] = {"id": point_id(hit.id)}
    if payload not in (None, False):
        shown["payload"] = _selected(payload_of(hit, settings), payload)
    if vector:
        shown["vector"] = list(hit.vector)
    return shown


def payload_of(hit: Hit, settings: QdrantSettings) -> dict[str, Any]:
    """Return a row's text and metadata where the settings put them in a payload."""
    if settings.metadata_key is None:
        return {**hit.metadata, settings.content_key: hit.content}
    return {settings.content_key: hit.content, settings.metadata_key: dict(hit.metadata)}


def check_selection(payload: Payload, vector: Any) -> None:
    """Check what is asked for of each row, before anything is charged.

    Raises:
        UnsupportedError: parts of nested members, or a named vector.
    """
    point(Hit("", "", {}, ()), payload, vector, QdrantSettings())


def _selected(whole: Mapping[str, Any], payload: Payload) -> dict[str, Any]:
    if payload is True:
        return dict(whole)
    chosen = {"include": payload} if isinstance(payload, list) else payload
    if not isinstance(chosen, dict) or len(chosen) != 1 or not {"include", "exclude"} & set(chosen):
        raise UnsupportedError("payload", where="with_payload", expected="include or exclude")
    [(how, names)] = chosen.items()
    if any("." in name or "[" in name for name in names):
        raise UnsupportedError("nested keys", where="with_payload", expected="keys at the top")
    return {name: value for name, value in whole.items() if (name in names) == (how == "include")}
