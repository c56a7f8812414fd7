"""Every member of every message: read within what `DECLARED` says of it, refused outside.

A rule of one member belongs here, by its declaration alone. Rules between members, signatures and
what a text means have tests of their own.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Any

import pytest
from message_examples import DECLARED, declared, examples, members
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, UnsupportedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.messages.beacon import BeaconChain, BeaconRound, Known
from ragaudit.ledger.messages.bodies import Body
from ragaudit.ledger.messages.kernel import Form, Message, joined
from ragaudit.ledger.messages.signed import SignedMessage

SAID: dict[str, Any] = json.loads(DECLARED.read_bytes())
LONGEST = 2**21
OF_TYPES: dict[str, Any] = {
    "null": None, "boolean": True, "integer": 7, "number": 7.0, "string": "?", "array": [{}],
    "object": {"?": 1},
}  # fmt: skip
# Texts that a form looks into, by the beginning of its description.
OTHER_TEXTS: dict[str, tuple[str, ...]] = {
    "decimal": (
        "0",
        "0.0",
        "-0.1",
        "+0.1",
        ".1",
        "0.",
        "00.1",
        "0.1\n",
        "1e-3",
        " 0.1",
        "0,1",
        "\N{ARABIC-INDIC DIGIT ZERO}.1",
        f"0.1{'0' * 12}",
    ),
    "fraction": (
        "0/1",
        "-1/2",
        "2/4",
        "1/1",
        "01/2",
        "1/0",
        "1.5",
        "1 /2",
        "1/2\n",
        "\N{ARABIC-INDIC DIGIT THREE}/2",
    ),
    "base64": ("A===", "AAA", "AAB=", "AA-_", "AAAA\n", " AAAA", "AA==AAAA"),
    "hex": ("00" * 31, "00" * 33, "AB" * 32, "0" * 63 + "g"),
    "hex, an": ("00" * 32, "01" + "00" * 31, "ff" * 32),  # of small order, or no point
    "origin": ("a\nb", "a b", "a+b"),
    "name of a": ("a/b", "a b", "a\n", "-a", "A"),
    "vkey": ("?", "a+00000000+AAAA", "a+0000000g+AQ=="),
    "one line": (" ", "a\nb", "a\0b", "a\x7f"),
    "leaf index": ("x", "01", "-1", "1.0", " 1", "1\n"),
    "trust": ("?", "quorum none\n", "# a comment\n"),
    "a word": (),
    '"bundle"': ("account/", "account/" + "AB" * 32, "account/" + "ab" * 32 + "\n", "bundles"),
}
TEXTS: dict[str, tuple[str, ...]] = {
    "origin": ("o", "o" * 255),
    "name of a p": ("0.a-b", "a" * 64),
    "name of a t": ("0-a", "a" * 64),
    "name of a w": ("0-a", "a" * 64),
    "id of": ("\0", "a" * 512, "\N{EURO SIGN}" * 170),
    "one line of 1..200": ("a", "a" * 200),
    "one line of 1..1000": ("a", "a" * 1000),
    '"bundle"': ("bundle", "account/" + "ab" * 32),
}
# Of a signed message, what is a message or a body itself: that it is covered has tests of its own.
OF_OTHERS = {"round", "receipts_list", "items", "charge", "answer", "body"}
KEY, OTHER = (PrivateKey.from_seed(each * 32) for each in (b"k", b"o"))
# Of what is no message of the kernel.
UNSAID = {"error": "MalformedError"}
# Of which more is demanded than what is declared, by a rule with a test of its own.
MORE = {("GenerationRequest", "ignored"), ("Policy", "account_index"), ("Policy", "epochs")}


def types(schema: Any) -> set[str]:
    """The JSON types that a schema lets in; an integer is the one number of canonical JSON."""
    if "anyOf" in schema:
        return set[str]().union(*map(types, schema["anyOf"]))
    return {schema["type"]} if "type" in schema else set(OF_TYPES)


def wrong(schema: Any, right: Any) -> Iterator[Any]:
    """JSON values that are none of a schema's, of each kind that it excludes.

    Args:
        schema: of a member.
        right: a value that is read; None where there is none at hand.
    """
    inside = types(schema)
    yield from (value for name, value in OF_TYPES.items() if name not in inside)
    for either in schema.get("anyOf", ()):
        others = set[str]().union(*(types(each) for each in schema["anyOf"] if each != either))
        for value in wrong(either, right):
            if not others & {name for name in OF_TYPES if is_of(value, name)}:
                yield value
    described = schema.get("description", "")
    for about, texts in OTHER_TEXTS.items():
        yield from texts if described.startswith(about) else ()
    yield from ends(described, Fraction(1, 997))
    match schema:
        case {"enum": [*choices]}:
            yield from ("", *(f"{choice} " for choice in choices), choices[0].swapcase() + "?")
        case {"minimum": low, "maximum": high}:
            yield from (low - 1, high + 1)
        case {"pattern": "^([0-9a-f]{2})*$"}:
            yield from ("0", "0g", "AB", " 00", "00\n", "\N{FULLWIDTH DIGIT ZERO}0")
            yield "00" * (schema.get("maxLength", LONGEST) // 2 + 1)
        case {"pattern": str(pattern)}:
            (digits,) = map(int, re.findall(r"\{(\d+)\}\$$", pattern))
            yield from ("", "0" * (digits - 1), "0" * (digits - 2), "0" * (digits + 2))
            yield from ("0" * (digits - 1) + "g", "A" * digits, "0x" + "0" * (digits - 2))
            yield from ("0" * digits + "\n", "\N{FULLWIDTH DIGIT ZERO}" * digits)
        case {"minLength": low, "maxLength": high}:
            yield from ("?" * (high + 1), "\N{EURO SIGN}" * (high // 3 + 1), "\ud800")
            yield from ["?" * (low - 1)] if low else []
        case {"items": item, "minItems": low, "maxItems": high}:
            held = right if isinstance(right, list) and right else [*inner(item)][-1:]
            if held and high < LONGEST:
                yield (held * (high // len(held) + 1))[: high + 1]
            if held and low:
                yield held[:1] * (low - 1)
            yield from ([*held[:-1], each] for each in wrong(item, (held or [None])[0]))
        case {"additionalProperties": dict(item)}:
            key, held = next(iter((right or {"?": None}).items()))
            yield from ({key: each} for each in wrong(item, held))
            names = (each for each in wrong(schema["names"], key) if isinstance(each, str))
            yield from ({each: held} for each in names)


def is_of(value: Any, name: str) -> bool:
    """Whether a JSON value is of a type of `OF_TYPES`."""
    return type(value) is type(OF_TYPES[name])


def inner(schema: Any) -> Iterator[Any]:
    """The ends of what a schema lets in; nothing of what it does not say in full."""
    match schema:
        case {"message": _}:
            return
        case {"anyOf": [*either]}:
            for each in either:
                yield from inner(each)
        case {"type": "null"}:
            yield None
        case {"type": "boolean"}:
            yield from (False, True)
        case {"enum": [*choices]}:
            yield from choices
        case {"minimum": low, "maximum": high}:
            yield from (low, high)
        case {"pattern": "^([0-9a-f]{2})*$"}:
            yield from ("", "0a" * (min(schema.get("maxLength", 0), LONGEST) // 2))
        case {"pattern": str(pattern)} if "description" not in schema:
            (digits,) = map(int, re.findall(r"\{(\d+)\}\$$", pattern))
            yield "0a" * (digits // 2)
        case {"minLength": low, "maxLength": high} if "description" not in schema:
            yield from ("a" * low, "a" * high, "\N{EURO SIGN}" * (high // 3))
        case {"description": str(described)}:
            for about, texts in TEXTS.items():
                yield from texts if described.startswith(about) else ()
            yield from ends(described, Fraction(0))
        case {"items": item, "minItems": low, "maxItems": high}:
            held = [*inner(item)]
            yield from [held[:1] * low] if held or not low else []
            yield from [held[:1] * high] if held and high < 2**17 else []
            yield from ([each] for each in held if low <= 1)


def ends(described: str, beyond: Fraction) -> Iterator[str]:
    """The ends of what a description says of a text, or what lies beyond them.

    Args:
        described: of the texts that have ends.
        beyond: how far; 0 for the ends.
    """
    if found := re.fullmatch(r"base64 of 1\.\.(\d+) (?:[if](\d+)|32 bytes)", described):
        size, most = int(found[2] or 256) // 8, int(found[1])
        counts = (1, size + 1, size * most + size) if beyond else (size, size * most)
        yield from (b64_encode(bytes(count)) for count in counts)
    bounds = re.findall(r"(at most|at least|below) ([\d/]+)", described)
    for word, bound in bounds:
        away = {"at least": -beyond, "at most": beyond, "below": Fraction(0)}[word]
        end = Fraction(bound) + away
        decimal = described.startswith("decimal")
        # A bound below which all lies is no value itself, nor has a decimal more than nine digits.
        if beyond or (word != "below" and (not decimal or end < 10**9)):
            yield f"{float(end):.6f}" if decimal else str(end)


@contextmanager
def named(*case: object) -> Iterator[None]:
    try:
        yield
    except BaseException as error:  # pytest's own are no exceptions
        error.add_note(f"where {case!r:.300}")
        raise


def cases() -> Iterator[tuple[type[Message], dict[str, Any], str, Form, Any]]:
    """Each member of each message: class, document, name, form, and what is said of it."""
    for kind, document in examples().items():
        for name, form in members(kind).items():
            yield kind, document, name, form, SAID[kind.__name__]["members"][name]


def refused(kind: type[Message], document: Any, where: str, *errors: str) -> None:
    """Check that a document is refused, at a place and below it; by the class's own error."""
    with pytest.raises((MalformedError, UnsupportedError)) as caught:
        kind.from_json(document)
    error, place = caught.value, joined(kind.WHERE, where)
    assert error.where == place or error.where.startswith((f"{place}.", f"{place}[")), error
    own = SAID[kind.__name__]["error"]
    assert type(error).__name__ in {own, *errors}, repr(error)


def below(schema: Any) -> set[str]:
    """Names of the messages within a member."""
    parts = schema.values() if isinstance(schema, dict) else schema
    found = {schema["message"]} if isinstance(schema, dict) and "message" in schema else set()
    return found.union(*(below(each) for each in parts if isinstance(each, dict | list)))


def test_what_is_declared_is_what_was() -> None:
    assert declared() == SAID, "run `python tests/support/message_examples.py`, and look"


def test_each_member_is_read_up_to_its_ends() -> None:
    for kind, document, name, form, schema in cases():
        values = [*inner(schema)] if (kind.__name__, name) not in MORE else []
        values += [document[name]] if name in document else []
        for value in values:
            with named(kind.__name__, name, value):
                read = form.read(value)
                assert (form.write(read) if form.write else read) == value


def test_each_member_is_refused_beyond_its_ends() -> None:
    for kind, document, name, form, schema in cases():
        errors = {SAID.get(each, UNSAID)["error"] for each in below(schema)}
        known = isinstance(form, Known) or isinstance(vars(form).get("_form"), Known)
        errors |= {"UnsupportedError"} if known else set()
        for value in wrong(schema, document.get(name)):
            with named(kind.__name__, name, value):
                with pytest.raises((MalformedError, UnsupportedError)):
                    form.read(value)
                refused(kind, {**document, name: value}, name, *errors)


def test_each_object_has_its_members_and_no_other() -> None:
    for kind, document in examples().items():
        said = SAID[kind.__name__]
        names = {*said["members"], *(["format"] if "format" in said else [])}
        schema = kind.json_schema()
        assert schema["properties"].keys() == names and schema["additionalProperties"] is False
        assert set(schema["required"]) == names.difference(said["optional"]), kind
        for name in names:
            with named(kind.__name__, name):
                less = {each: value for each, value in document.items() if each != name}
                if name not in said["optional"]:
                    refused(kind, less, name)
                elif issubclass(kind, Body):  # null says as much as no member
                    assert kind.from_json({**less, name: None}) == kind.from_json(less)
                else:
                    refused(kind, {**less, name: None}, name)
        with named(kind.__name__):
            refused(kind, {**document, "more": 1}, "more")
            for other in (None, [], "text", 7, True, [document]):
                refused(kind, other, "")
            for other in (None, "", said.get("format", "?") + "2"):
                if "format" in said:
                    refused(kind, {**document, "format": other}, "format")


def test_what_is_read_is_what_was_written() -> None:
    for kind, document in examples().items():
        with named(kind.__name__):
            message = kind.from_json(document)
            assert message.to_json() == document
            assert message.encode() == canonical_json.dumps(document)
            if kind in parsed():
                assert kind.parse(message.encode()) == message


def test_bytes_are_canonical() -> None:
    for kind in parsed():
        document = examples()[kind]
        data = canonical_json.dumps(document)
        name = min(document)
        twice = b"{%b:%b," % (json.dumps(name).encode(), canonical_json.dumps(document[name]))
        others = [
            data + b"\n",
            b" " + data,
            data[:-1],
            b"",
            b"null",
            b"[]",
            b"\xff",
            twice + data[1:],
        ]
        if len(document) > 1:
            falling = dict(sorted(document.items(), reverse=True))
            others.append(json.dumps(falling, separators=(",", ":"), ensure_ascii=False).encode())
        for other in others:
            with named(kind.__name__, other[:60]), pytest.raises(MalformedError):
                kind.parse(other)


def parsed() -> list[type[Message]]:
    """Of which bytes are read, in one spelling; a beacon's API has its own."""
    return [
        kind
        for kind in examples()
        if kind not in (BeaconChain, BeaconRound)
        and len(inspect.signature(kind.parse).parameters) == 1
    ]


def test_a_signature_covers_each_member_that_is_signed() -> None:
    for kind, document in examples().items():
        if not issubclass(kind, SignedMessage):
            continue
        signed = kind.from_json(document).signed(KEY).to_json()
        assert signed["signature"] not in repr(kind.from_json(signed))
        SignedMessage.verify(kind.from_json(signed), KEY.public)
        with pytest.raises(SignatureRejected):
            SignedMessage.verify(kind.from_json(signed), OTHER.public)
        for name, schema in SAID[kind.__name__]["members"].items():
            others = []
            for value in inner(schema) if name in kind._signed else ():
                with suppress(MalformedError):
                    others.append(kind.from_json({**signed, name: value}))
            others = [each for each in others if each.to_json() != signed]
            with named(kind.__name__, name):
                assert others or name not in kind._signed or name in OF_OTHERS
                for other in others:
                    with pytest.raises(SignatureRejected):
                        SignedMessage.verify(other, KEY.public)
