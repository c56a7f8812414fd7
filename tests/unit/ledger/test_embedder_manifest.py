"""Embedder manifests: one accepted form, digest as specified."""

import hashlib
from typing import Any

import pytest
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.tagged import enc
from ragaudit.ledger.messages.embedder_manifest import MAX_MANIFEST_BYTES, EmbedderManifest

VALID: dict[str, Any] = {
    "format": "ragaudit/v1/embedder",
    "name": "toy",
    "dimension": 3,
    "prompt_template": "query: {text}",
    "schema": {"pooling": "mean"},
    "files": {"weights.bin": "ab" * 32},
}


def test_round_trip_and_digest() -> None:
    manifest = EmbedderManifest.from_json(VALID)
    assert manifest.to_json() == VALID
    assert EmbedderManifest.parse(manifest.encode()) == manifest
    expected = hashlib.sha256(enc("ragaudit/v1/embedder", dumps(VALID))).digest()
    assert manifest.digest() == expected


@pytest.mark.parametrize(
    "change",
    [
        {"format": "ragaudit/v2/embedder"}, {"name": ""}, {"name": 7}, {"dimension": 0},
        {"dimension": 4097}, {"dimension": True}, {"dimension": "3"},
        {"prompt_template": "no place"}, {"schema": []}, {"schema": {"pooling": 1}},
        {"files": {"a": "AB" * 32}}, {"files": {"a": "ab" * 31}}, {"files": {"": "ab" * 32}},
        {"extra": 1},
    ],
)  # fmt: skip
def test_other_forms_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        EmbedderManifest.from_json({**VALID, **change})


@pytest.mark.parametrize("member", sorted(VALID))
def test_a_missing_member_is_refused(member: str) -> None:
    with pytest.raises(MalformedError):
        EmbedderManifest.from_json({k: v for k, v in VALID.items() if k != member})


def test_other_bytes_are_refused() -> None:
    data = dumps(VALID)
    for wrong in (data + b" ", b" " + data, data[:-1], b"[]", b"null"):
        with pytest.raises(MalformedError):
            EmbedderManifest.parse(wrong)


def test_a_manifest_names_files_and_does_not_hold_them() -> None:
    with pytest.raises(MalformedError, match="manifest too long"):
        EmbedderManifest.parse(b" " * (MAX_MANIFEST_BYTES + 1))
