"""Embedder manifests: one accepted form, digest as specified."""

import hashlib
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.messages.manifests import MAX_MANIFEST_BYTES, EmbedderManifest

VALID: dict[str, Any] = {
    "format": "ragaudit/v1/embedder",
    "kind": "files",
    "name": "toy",
    "dimension": 3,
    "prompt_template": "query: {text}",
    "schema": {"pooling": "mean"},
    "files": {"weights.bin": "ab" * 32},
    "probes": [],
}


def test_round_trip_and_digest() -> None:
    manifest = EmbedderManifest.from_json(VALID)
    assert manifest.to_json() == VALID
    assert EmbedderManifest.parse(manifest.encode()) == manifest
    expected = hashlib.sha256(enc("ragaudit/v1/embedder", dumps(VALID))).digest()
    assert manifest.digest() == expected


def test_a_manifest_names_files_and_does_not_hold_them() -> None:
    with pytest.raises(MalformedError, match="manifest too long"):
        EmbedderManifest.parse(b" " * (MAX_MANIFEST_BYTES + 1))


NONE: dict[str, Any] = {
    "format": "ragaudit/v1/embedder", "kind": "none", "name": "none", "dimension": 3,
    "prompt_template": None, "schema": {}, "files": {}, "probes": [],
}  # fmt: skip
PROBE = {"text": "a text", "vector": "AAH/"}  # 0, 1, -1
ENDPOINT: dict[str, Any] = {
    **NONE, "kind": "endpoint", "name": "openai-compatible", "prompt_template": "{text}",
    "schema": {"model": "m"}, "probes": [PROBE],
}  # fmt: skip


@pytest.mark.parametrize("document", [NONE, ENDPOINT])
def test_services_and_applications_that_embed_round_trip(document: dict[str, Any]) -> None:
    manifest = EmbedderManifest.from_json(document)
    assert manifest.to_json() == document
    assert EmbedderManifest.parse(manifest.encode()) == manifest
    expected = hashlib.sha256(enc("ragaudit/v1/embedder", dumps(document))).digest()
    assert manifest.digest() == expected
    assert EmbedderManifest.of_none(3).to_json() == NONE


@for_each(
    "document",
    [
        {**VALID, "kind": "none"}, {**VALID, "kind": "endpoint"},
        {**VALID, "prompt_template": "no place"}, {**NONE, "kind": "files"},
        {**NONE, "prompt_template": "{text}"}, {**NONE, "schema": {"a": "b"}},
        {**NONE, "files": {"a": "ab" * 32}}, {**NONE, "name": "wordllama"},
        {**NONE, "probes": [PROBE]},
        {**VALID, "probes": [PROBE]},
        {**ENDPOINT, "probes": []}, {**ENDPOINT, "schema": {}},
        {**ENDPOINT, "prompt_template": None},
        {**ENDPOINT, "files": {"a": "ab" * 32}}, {**ENDPOINT, "probes": [PROBE, PROBE]},
        {**ENDPOINT, "probes": [{**PROBE, "vector": "AAH/AA=="}]},
        {**ENDPOINT, "probes": [{**PROBE, "vector": "AAAA"}]},
        {**ENDPOINT, "probes": [{**PROBE, "vector": "f39/"}]},
        {**ENDPOINT, "probes": [{**PROBE, "vector": "gAAA"}]},
    ],
)  # fmt: skip
def test_other_forms_of_either_kind_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        EmbedderManifest.from_json(document)
