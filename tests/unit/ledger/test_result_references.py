"""Test results that a verdict refers to: who signed, about which window, and nothing of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.errors import MalformedError, RagauditError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.signed_results import (
    MAX_REFERENCES,
    MAX_RESULT_BYTES,
    OtherResult,
    References,
    ResultReference,
    match,
)

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "references.json").read_text()
)
POLICY, RESULT = VECTORS["policy"].encode(), VECTORS["result"].encode()
KEY = PublicKey.from_raw(bytes.fromhex(VECTORS["key"]))
REFUSALS = {
    "not signed": "does not verify",
    "signed by another key": "signed by another key",
    "of another window": "of another window, or of none",
    "of no window": "of another window, or of none",
    "with a subject twice": "no subject, or one twice",
    "of another type": "not an in-toto test-result",
    "with another outcome": "not an in-toto test-result",
}


def reference(name: str = "membership") -> ResultReference:
    return ResultReference.of(name, RESULT, KEY, POLICY)


def test_known_answers() -> None:
    assert reference().encode() == VECTORS["reference"].encode()
    assert References((reference(),)).encode() == VECTORS["item"].encode()
    assert References.parse(VECTORS["item"].encode()).messages == (reference(),)
    reference().check(RESULT, POLICY)


@for_each("case", sorted(VECTORS["refused"]))
def test_other_results_are_refused_by_name(case: str) -> None:
    with pytest.raises(RagauditError, match=REFUSALS[case]):
        ResultReference.of("membership", VECTORS["refused"][case].encode(), KEY, POLICY)


def test_the_file_must_be_the_one_with_the_digest() -> None:
    other = VECTORS["refused"]["of another window"].encode()
    with pytest.raises(OtherResult, match="another document"):
        reference().check(other, POLICY)
    with pytest.raises(OtherResult, match="of another window"):
        reference().check(RESULT, POLICY + b" ")
    with pytest.raises(OtherResult, match="not a test result that the verdict refers to"):
        match(References((reference(),)), [RESULT, other])
    with pytest.raises(OtherResult, match="it refers to no test result"):
        match(None, [RESULT])
    assert match(References((reference(),)), [RESULT]) == {"membership": RESULT}


def test_only_one_form_is_read() -> None:
    value = json.loads(VECTORS["reference"])
    for change in (
        {"name": "Membership"},
        {"name": "../policy"},
        {"predicate_type": "https://ragaudit.dev/verdict/v2"},
        {"digest": "00"},
        {"result": "PASSED"},
    ):
        with pytest.raises(MalformedError):
            ResultReference.from_json({**value, **change})
    with pytest.raises(MalformedError):
        References.parse(b"[]")
    for names in (["b", "a"], ["a", "a"], [f"n{n:02}" for n in range(MAX_REFERENCES + 1)]):
        with pytest.raises(MalformedError, match="not by rising name"):
            References(tuple(map(reference, names)))
    with pytest.raises(MalformedError, match="too long"):
        ResultReference.of("membership", bytes(MAX_RESULT_BYTES + 1), KEY, POLICY)
