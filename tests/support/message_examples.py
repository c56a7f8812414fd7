"""One document that is read of every message: found in the vectors, or made here."""

from __future__ import annotations

import base64
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from types import ModuleType
from typing import Any

from generation_messages import CHARGE, GENERATION, KEYWORDS
from integrity_scene import policy_value
from ragaudit.encoding.errors import RagauditError
from ragaudit.lab.scenario.third_parties import BeaconWindow, trust_text
from ragaudit.ledger.messages.beacon import QUICKNET
from ragaudit.ledger.messages.documents import ProvenIndex
from ragaudit.ledger.messages.entries import Void
from ragaudit.ledger.messages.kernel import Form, Items, MapOf, Message, Text
from ragaudit.ledger.messages.missing import MissingEntry, MissingRecord
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipts import GeneratedReceipt
from ragaudit.ledger.messages.shown import ProvenOpening
from vector_scripts import VECTORS

# Of which there is no message, only of classes below them.
_BASES = {
    *("Body", "HeldBody", "SignedMessage", "VerifierMessage", "AccountMessage", "PolicyMember"),
    *("ReleaseMessage", "ShownEntry", "LogShown", "RowOpening", "Salted", "Openings"),
    *("_Deletion", "_Missing", "_PublicPart", "_ReceiptFile"),
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
_OPENINGS = {
    **dict.fromkeys(("salt_q", "salt_e", "salt_f", "salt_s"), _D),
    **{"kind": "text", "query": "q", "filter": "", "embedding": "AQA=", "sketch": ""},
}
_LOGGED = {"index": 3, "salt": _D, "proof": None}
POLICY: dict[str, Any] = {
    **BeaconWindow().policy_json(),
    **{"account_index": True, "epochs": True, "versions": False, "generation": GENERATION},
    "coalition_estimate": "ragaudit/v1/direction",
    "cosigners": {"demand": "required", "trust": trust_text()},
    "time_stamps": {"demand": "required"},
    "owners": {"rows": {"beta": "0.01", "eta": "0.001", "minimum": 30}},
}
"""With every member that there is."""
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
    "Probe": {"text": "a text", "vector": "AAH/"},
    "RecordsBody": {"parts": 1, "digest": _D},
    "MadeOf": {"used": [_USED], "votes": [_VOTES]},
    "RecordOpenings": {
        "request": {"counter": None, "filter": "", "kind": "text", "query": "q", "top_k": 1},
        **_OPENINGS,
        **{"salt_r": _D, "selected": [1], "selection_blinding": _D},
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
    "ChargeOpenings": {
        "request": {"counter": None, "filter": "", "query": "q"},
        **_OPENINGS,
    },
    "Policy": POLICY,
    "OverlappingWindow": {"policy": policy_value(), "allowed": 1, "shared": 1},
    "VoidedCharge": {
        "format": "ragaudit/v1/voided-charge",
        "charge": {**_LOGGED, "body": CHARGE.encode().hex()},
        "void": {**_LOGGED, "body": Void("w", "acme", 3, 4001).encode().hex()},
    },
    "BeaconChain": QUICKNET.to_json(),
    "BeaconTerms": {**QUICKNET.to_json(), "kind": "drand", "delay_seconds": 30},
    "CosignerTerms": {"demand": "required", "trust": trust_text()},
    "_Owners": {"rows": None},
    "_Tenant": {"id": "t", "owner_key": None},
    "_Shown": {"index": 3, "kind": "close", "salt": _D, "body": "00"},
    "Demand": {"demand": "required"},
    "GenerationTerms": GENERATION,
    "TokenVoting": GENERATION["answerer"],
    "ChargeTerms": GENERATION["charges"],
    "ReplayTerms": GENERATION["replay"],
    "AdaptiveTerms": {"edges": [9000, 3000], "epsilon": "1/4", "enough": 5},
    "KeywordVoting": KEYWORDS["answerer"],
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
            if kind.__name__ not in _BASES
            and kind.__module__.startswith(_PARTIES)
            and _declared(kind)
        },
        key=lambda kind: (kind.__module__, kind.__name__),
    )


def has_a_list(kind: type[Message]) -> bool:
    """Whether a message reads a list itself, and not only messages that may have one."""
    return any(isinstance(form, Items) for form in kind.FORMS.values())


@cache
def examples() -> dict[type[Message], Any]:
    """A document of each; nobody changes them."""
    known = list({json.dumps(each, sort_keys=True): each for each in _stored()}.values())
    found: dict[type[Message], Any] = {}
    for kind in messages():
        own = [MADE[kind.__name__]] if kind.__name__ in MADE else known
        found[kind] = _example(kind, own)
    unproven = GeneratedReceipt.from_json(found[GeneratedReceipt]).unproven().to_json()
    found[MissingEntry] = {
        **found[MissingRecord],
        **{"format": MissingEntry.FORMAT, "receipt": unproven, "entry": "charge"},
    }
    opening = found[ProvenOpening]
    found[ProvenIndex] = {
        **{"origin": "o", "tenant": "t", "version": 1, "document_secret": _D, "opening": opening},
        "announced": None,
    }
    assert POLICY.keys() >= Policy._optional, "a new member of a policy: add it there"
    for kind in [kind for kind, document in found.items() if document is None]:
        found[kind] = _composed(kind, found, known)
    return found


def _example(kind: type[Message], known: list[Any]) -> Any:
    for document in known:
        with suppress(RagauditError):
            kind.from_json(document)
            return document
    return None


def _composed(kind: type[Message], found: dict[type[Message], Any], known: list[Any]) -> Any:
    """A document of examples of messages, and elsewhere of members of the same name."""
    document: dict[str, Any] = {"format": kind.FORMAT} if kind.KIND else {}
    for name, form in kind.FORMS.items():
        inner = next((each for each in found if each.__name__ == form.schema.get("title")), None)
        values = [found[inner]] if inner else [each[name] for each in known if name in each]
        document[name] = next((value for value in values if _is_read(form, value)), None)
    return document if _is_read(kind, document) else None


def _is_read(form: Form | type[Message], value: Any) -> bool:
    with suppress(RagauditError):
        form.read(value)
        return True
    return False


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


DECLARED = VECTORS / "members.json"
"""What each member may be; `python tests/support/message_examples.py` writes it anew."""


def declared() -> dict[str, Any]:
    """What each class says of its members, in the form of `DECLARED`."""
    return {
        kind.__name__: {
            "error": kind.ERROR.__name__,
            "where": kind.WHERE,
            "optional": sorted(kind._optional),
            "members": {name: _said(form) for name, form in members(kind).items()},
            **({"format": kind.FORMAT} if kind.KIND else {}),
        }
        for kind in messages()
    }


def members(kind: type[Message]) -> dict[str, Form]:
    """The members that stand in the JSON object of a message."""
    found: dict[str, Form] = {}
    for name, form in kind.FORMS.items():
        inner = kind._embedded.get(name)
        found |= {name: form} if inner is None else members(inner)
    return found


def _said(form: Form) -> Any:
    schema = _short(form.schema)
    if isinstance(form, MapOf):
        return {**schema, "names": _said(form._key)}
    # Of bytes: JSON schema counts characters, of which two bytes may be one.
    return {**schema, "minLength": form._low} if isinstance(form, Text) else schema


def _short(schema: Any) -> Any:
    """A schema with messages in it by name."""
    if isinstance(schema, list):
        return [_short(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "title" in schema:
        return {"type": "object", "message": schema["title"]}
    return {name: _short(each) for name, each in schema.items()}


def _written() -> str:
    lines = []
    for kind, said in declared().items():
        inner = [f'   "{name}": {json.dumps(each)}' for name, each in said.pop("members").items()]
        head = json.dumps(said)[:-1]
        body = ",\n".join(inner)
        lines.append(f' "{kind}": {head}, "members": {{\n{body}\n }}}}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    DECLARED.write_text(_written())
