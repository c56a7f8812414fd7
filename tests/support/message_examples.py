"""One document that is read of every message: found in the vectors, or made here."""

from __future__ import annotations

import base64
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.messages.kernel import Items, Message
from vector_scripts import VECTORS

# Of which there is no message, only of classes below them.
_BASES = {
    *("Body", "HeldBody", "SignedMessage", "VerifierMessage", "AccountMessage"),
    *("ReleaseMessage", "ShownEntry", "_Deletion", "LogShown", "RowOpening", "Salted", "Openings"),
}
_PARTIES = ("ragaudit.ledger", "ragaudit.client", "ragaudit.prover", "ragaudit.verifier")
_D = "5a" * 32
_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
_REGISTRATION = {"index": 1, "salt": _D, "body": "00", "proof": "proof"}
_ROUND = {
    "round": 123,
    "randomness": "fb8f7bc29bf24db51871ec8c79f3a1e4bd0557bc0dfcee9ed1d924e69d1c60dc",
    "signature": "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482"
    "e26cd02df835d3546d23c4b13e0dfc92",
}
_STAMP = {"size": 1, "token": "AAAA"}
_SIGNED = [{"signature": "00"}]
_PAID = {"position": 1, "vector": [300, -301, 302, 303, 304], "blinding": _D}
_USED = {"position": 1, "id": "a", "content": "text", "attributes": "{}", "salt": _D}
_VERSION = {"version": 1, "rows": 3, "null_rows": 0, "time": None}
_VOTES = {"public": 5, "voters": [50257, -1]}
# Of those that no vector holds, by name.
MADE: dict[str, Any] = {
    "WindowBody": {"policy": {}, "embedder": {}},
    "OpeningBody": {"opening": "00", "salt": _D, "empty_checkpoint": "note"},
    "EntriesBody": {"entries": [{"index": 3, "kind": "close", "salt": _D, "body": "00"}]},
    "CloseBody": {"final_checkpoint": "note"},
    "ShownCounts": {
        "window": "w1",
        "tenant": "t1",
        "in_force": 1,
        "versions": [_VERSION],
    },
    "ShownVersion": _VERSION,
    "CosignedBody": {"checkpoints": ["note"]},
    "StampsBody": {"stamps": [_STAMP]},
    "TimeStamp": _STAMP,
    "RoundBody": {"round": _ROUND},
    "RecordsBody": {"parts": 1, "digest": _D},
    "MadeOf": {"used": [_USED], "votes": [_VOTES]},
    "RecordOpenings": {
        "request": {"counter": None, "filter": "", "kind": "text", "query": "q", "top_k": 1},
        **dict.fromkeys(("salt_q", "salt_e", "salt_f", "salt_s", "salt_r"), _D),
        **{"kind": "text", "query": "q", "filter": "", "embedding": "AQA=", "sketch": ""},
        **{"selected": [1], "selection_blinding": _D},
    },
    "CountedVersion": {"version": 1, "rows": 3, "null_rows": 0, "time": None},
    "HeldParts": {"parts": 0, "complete": True},
    "Submission": {"accepted": 1, "known": 0},
    "ReceiptsBody": {"receipts": _SIGNED, "holder": {}, "registration": _REGISTRATION},
    "RefusalsBody": {"refusals": _SIGNED, "holder": {}, "registration": _REGISTRATION},
    "ClaimBody": {"promise": {}, "nonce": _D, "registration": _REGISTRATION},
    "DisputesBody": {"disputes": _SIGNED, "registration": _REGISTRATION},
    "StatementBody": {"statement": {}, "registration": _REGISTRATION},
    "FindingBody": {"finding": {}, "public": {}},
    "CaseBody": {"file": {}, "window": {}},
    "AccessBody": {"reader": "r", "reason": "r"},
    "ReferenceBody": {"key": _KEY, "result": {}},
    "DisputeStatus": {"sampled": False, "step": 3},
    "Claimed": {"claimed": True},
    "ClaimsPage": {"claims": [{"promise": {}, "nonce": _D}], "next": None},
    "Clock": {"responses": {"1": 5}, "claims": {_D: 5}, "close": None, "records": None},
    "AccountRecords": {
        "format": "ragaudit/v1/account-records",
        "holder": "verifier",
        "provider": "acme",
        "window": "w",
        "pseudonym": _D,
    },
    "AdaptiveTerms": {"edges": [9000, 3000], "epsilon": "1/4", "enough": 5},
    "KeywordVoting": {
        **{"kind": "dp-ksa", "epsilon_choice": "1/2", "sigma": "4", "delta_test": "1/1000000"},
        **{"delta_conversion": "1/1000000", "voters": 2, "sizes": [1, 2], "stop_words": ["a"]},
        **{"tokens": 8, "final": "keywords"},
    },
    "RetrievalTerms": {
        **{"metric": "cosine", "largest_norm": None, "filter_grammar": "empty"},
        **{"public_columns": [{"name": "year", "type": "integer"}], "query_kinds": ["text"]},
        **{"retry_seconds": 60, "versions": False},
    },
    "GeneratedKeywords": {"keywords": ["word"], "text": "word"},
    "PaidRow": _PAID,
    "UsedRow": _USED,
    "Votes": _VOTES,
    "Replay": {
        "format": "ragaudit/v1/replay",
        "blinding": _D,
        "rows": [_PAID],
        "used": [_USED],
        "votes": [_VOTES],
        "answer": {"text": "a", "tokens": [2], "private": 1},
        "salt_a": _D,
    },
}


def messages() -> list[type[Message]]:
    """Every class of a message that parties read, wherever it is declared."""
    for name in _PARTIES:
        _import(name)
    return sorted(
        {
            kind
            for kind in _below(Message)
            if kind.__name__ not in _BASES and kind.__name__[0] != "_" and _declared(kind)
        },
        key=lambda kind: (kind.__module__, kind.__name__),
    )


def has_a_list(kind: type[Message]) -> bool:
    """Whether a message reads a list itself, and not only messages that may have one."""
    return any(isinstance(form, Items) for form in kind.FORMS.values())


def examples() -> dict[type[Message], Any]:
    """A document of each, for as many as there is one."""
    known = list({json.dumps(each, sort_keys=True): each for each in _stored()}.values())
    return {
        kind: found
        for kind in messages()
        if (found := _example(kind, [MADE[kind.__name__]] if kind.__name__ in MADE else known))
        is not None
    }


def _example(kind: type[Message], known: list[Any]) -> Any:
    for document in known:
        with suppress(RagauditError):
            kind.from_json(document)
            return document
    return None


def _import(name: str) -> None:
    package: ModuleType = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if "migrations" not in module.name:
            importlib.import_module(module.name)


def _below(base: type[Any]) -> Iterator[type[Any]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _below(kind)


def _declared(kind: type[Any]) -> bool:
    """Whether it is what its name stands for: a class with slots is made anew of another one."""
    return getattr(sys.modules[kind.__module__], kind.__name__, None) is kind


def _stored() -> Iterator[dict[str, Any]]:
    frozen = VECTORS.parent / "frozen"
    for path in [*sorted(VECTORS.glob("*.json")), *sorted(frozen.rglob("*.json"))]:
        yield from _objects(json.loads(path.read_bytes()))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """The objects in a value, also those in texts that are JSON or base64 of it."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _objects(each)
    elif isinstance(value, list):
        for each in value[:50]:
            yield from _objects(each)
    elif isinstance(value, str):
        with suppress(ValueError):
            text = value if value[:1] in ("{", "[") else base64.b64decode(value).decode()
            if text[:1] in ("{", "["):
                yield from _objects(json.loads(text))
