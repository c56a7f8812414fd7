"""Manifests of generators: one accepted form, digests as specified."""

import json
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.manifests import (
    MAX_MANIFEST_BYTES,
    GeneratorManifest,
    Prompt,
    Vocabulary,
)
from vector_scripts import VECTORS

KNOWN = json.loads((VECTORS / "generator.json").read_text())
TOKENS, ANSWERS = (json.loads(case["manifest"]) for case in KNOWN["generators"])


@pytest.mark.parametrize("number", [0, 1])
def test_known_manifests(number: int) -> None:
    case = KNOWN["generators"][number]
    manifest = GeneratorManifest.parse(case["manifest"].encode())
    assert manifest.encode().decode() == case["manifest"]
    assert manifest.digest.hex() == case["digest"]


def test_a_vocabulary_is_known_by_its_digest() -> None:
    manifest = GeneratorManifest.from_json(TOKENS)
    vocabulary = Vocabulary(tuple(KNOWN["tokens"]), 0)
    assert vocabulary.terms.to_json() == KNOWN["vocabulary"]
    manifest.check_vocabulary(vocabulary)
    turned = Vocabulary(vocabulary.tokens[::-1], len(vocabulary.tokens) - 1)
    for other in (turned, Vocabulary(vocabulary.tokens, 1), Vocabulary(("a",), 0)):
        with pytest.raises(MalformedError, match="not the committed vocabulary"):
            manifest.check_vocabulary(other)


@for_each(
    "change",
    [
        {"files": {}},
        {"kind": "endpoint"},
        {"vocabulary": None}, {"keywords": ANSWERS["keywords"]},
        {"vocabulary": {**KNOWN["vocabulary"], "end": 5}},
        {"prompt": {"template": "{question}", "between": ""}},
        {"prompt": {"template": "{documents}", "between": ""}},
        {"probes": TOKENS["probes"][:1] * 2},
    ],
)  # fmt: skip
def test_other_forms_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        GeneratorManifest.from_json({**TOKENS, **change})


def test_an_endpoint_has_no_files_of_ours() -> None:
    with pytest.raises(MalformedError, match="files"):
        GeneratorManifest.from_json({**ANSWERS, "files": TOKENS["files"]})


def test_a_manifest_names_files_and_does_not_hold_them() -> None:
    with pytest.raises(MalformedError, match="manifest too long"):
        GeneratorManifest.parse(dumps(TOKENS) + b" " * MAX_MANIFEST_BYTES)
    with pytest.raises(MalformedError):
        GeneratorManifest.parse(dumps(TOKENS) + b" ")


def test_a_document_cannot_take_the_place_of_the_question() -> None:
    prompt = Prompt("{documents}|{question}", between="+")
    assert prompt.of(("a {question}", "", "b"), "why?") == "a {question}+b|why?"
