"""Signed notes and keys: what is one, what is none, and who signed."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.errors import MalformedNote, NoteRejected
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import (
    COSIGNATURE_V1,
    ED25519,
    MAX_NOTE_BYTES,
    MAX_SIGNATURES,
    Note,
    NoteSignature,
    SigningKey,
    VerifierKey,
    parse_note,
    sign_note,
    verify_note,
)

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "ledger.json").read_text("utf-8"))
ORIGIN = "provider.example/ragaudit/w1"
LOG = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(b"\x01" * 32))
COSIGNERS = [
    SigningKey(f"cosigner.example/{i}", COSIGNATURE_V1, PrivateKey.from_seed(bytes([i]) * 32))
    for i in (2, 3, 4)
]


# --- notes


def test_the_example_of_the_specification_verifies() -> None:
    key = VerifierKey.parse(VECTORS["note"]["vkey"])
    note = parse_note(VECTORS["note"]["note"].encode())
    verify_note(note, key)
    assert note.text == "This is an example message.\n"
    assert note.encode() == VECTORS["note"]["note"].encode()
    assert str(key) == VECTORS["note"]["vkey"]


def test_the_text_may_hold_empty_lines() -> None:
    text = "one\n\n\ntwo\n"
    data = Note(text, (sign_note(text, LOG),)).encode()
    assert parse_note(data).text == text
    verify_note(parse_note(data), LOG.verifier_key)


def test_unicode_line_separators_do_not_split() -> None:
    text = "one\u2028two\u0085three\n"
    note = parse_note(Note(text, (sign_note(text, LOG),)).encode())
    assert note.text == text
    verify_note(note, LOG.verifier_key)


LINE = str(sign_note("text\n", LOG))
NAME, BLOB = LINE[2:-1].split(" ")


def raw(line: Any, text: str = "text\n") -> Any:
    return (text + "\n" + line).encode()


def test_the_corpus_below_starts_from_a_note_that_parses() -> None:
    verify_note(parse_note(raw(LINE)), LOG.verifier_key)


@for_each(
    "data",
    [
        b"",
        b"\n",
        b"\n\n",
        b"text\n",
        b"text\n\n",
        b"text\n\n\n",
        raw(LINE)[:-1],
        raw(LINE) + b"\n",
        raw(LINE) + b"x",
        raw(LINE, "text"),
        raw(LINE).replace(b"\n", b"\r\n"),
        raw(LINE, "te\x00xt\n"),
        raw(LINE, "te\x0bxt\n"),
        raw(LINE, "te\x0cxt\n"),
        raw(LINE, "te\x1cxt\n"),
        raw(LINE, "te\txt\n"),
        b"\xff\n\n" + LINE.encode(),
        b"\xed\xa0\x80\n\n" + LINE.encode(),
        raw(LINE.replace("— ", "- ")),
        raw(LINE.replace("— ", "—")),
        raw(LINE.replace("— ", "—  ")),
        raw(LINE.replace("— ", "—\u00a0")),
        raw(" " + LINE),
        raw(f"— {BLOB}\n"),
        raw(f"—  {BLOB}\n"),
        raw(f"— {NAME}\n"),
        raw(f"— {NAME} \n"),
        raw(f"— na\u2003me {BLOB}\n"),
        raw(f"— na\u2028me {BLOB}\n"),
        raw(f"— na\u0085me {BLOB}\n"),
        raw(f"— na+me {BLOB}\n"),
        raw(f"— {'n' * 256} {BLOB}\n"),
        raw(f"— {NAME} {BLOB} \n"),
        raw(f"— {NAME}  {BLOB}\n"),
        raw(f"— {NAME} {BLOB} {BLOB}\n"),
        raw(f"— {NAME} {BLOB}=\n"),
        raw(f"— {NAME} {BLOB[:-1]}\n"),
        raw(f"— {NAME} {BLOB[:-4]}*{BLOB[-3:]}\n"),
        raw(f"— {NAME} {BLOB[:40]} {BLOB[40:]}\n"),
        raw(f"— {NAME} {BLOB[:40]}\u2028{BLOB[40:]}\n"),
        raw(f"— {NAME} {BLOB.replace('+', '-').replace('/', '_')}-_\n"),
        raw(f"— {NAME} AAAAAA==\n"),  # a key id and nothing signed
        raw(LINE + LINE),
        raw("".join(f"— n{i} {BLOB}\n" for i in range(MAX_SIGNATURES + 1))),
        raw(LINE, "x" * MAX_NOTE_BYTES + "\n"),
    ],
)
def test_malformed_notes_are_refused(data: Any) -> None:
    with pytest.raises(MalformedNote):
        parse_note(data)


def test_a_signature_line_above_the_last_empty_line_is_text() -> None:
    note = parse_note(raw(LINE + "\n" + LINE))
    assert note.text == "text\n\n" + LINE
    with pytest.raises(NoteRejected):
        verify_note(note, LOG.verifier_key)


def test_base64_with_other_padding_bits_is_refused() -> None:
    # The last character before '=' carries two bits that decoders ignore.
    blob = base64.b64encode(bytes(68)).decode()
    assert blob.endswith("A=")
    parse_note(raw(f"— {NAME} {blob}\n"))
    with pytest.raises(MalformedNote, match="canonical"):
        parse_note(raw(f"— {NAME} {blob[:-2]}B=\n"))


def test_sixteen_and_more_signatures_are_accepted() -> None:
    lines = "".join(f"— n{i} {BLOB}\n" for i in range(MAX_SIGNATURES - 1))
    verify_note(parse_note(raw(LINE + lines)), LOG.verifier_key)


def test_unknown_keys_are_ignored_even_with_our_name_or_id() -> None:
    other_id = NoteSignature(LOG.name, b"\0\0\0\0", bytes(64))
    other_name = NoteSignature("other", LOG.verifier_key.key_id, bytes(64))
    note = Note("text\n", (other_id, other_name, sign_note("text\n", LOG)))
    verify_note(parse_note(note.encode()), LOG.verifier_key)


def test_a_known_key_must_have_signed() -> None:
    note = parse_note(raw(LINE))
    stranger = SigningKey(ORIGIN, ED25519, PrivateKey.from_seed(b"\x09" * 32))
    with pytest.raises(NoteRejected, match="no signature"):
        verify_note(note, stranger.verifier_key)
    with pytest.raises(NoteRejected, match="does not verify"):
        verify_note(Note("other\n", note.signatures), LOG.verifier_key)


@pytest.mark.parametrize("length", [1, 63, 65, 72])
def test_a_signature_of_another_length_is_rejected(length: Any) -> None:
    good = sign_note("text\n", LOG).blob
    line = NoteSignature(LOG.name, LOG.verifier_key.key_id, (bytes(8) + good)[-length:])
    with pytest.raises(NoteRejected, match="length"):
        verify_note(Note("text\n", (line,)), LOG.verifier_key)


def test_with_signatures_adds_each_key_once() -> None:
    note = parse_note(raw(LINE))
    again = note.with_signatures([sign_note("text\n", LOG)])
    assert again == note
    line = cosign("text\n", COSIGNERS[0], 5)
    assert note.with_signatures([line, line]).signatures == (*note.signatures, line)


@pytest.mark.parametrize("text", ["", "no newline", "tab\t\n", "\ud800\n"])
def test_texts_that_are_no_note_are_not_signed(text: Any) -> None:
    with pytest.raises(MalformedNote):
        sign_note(text, LOG)
    with pytest.raises(MalformedNote):
        Note(text, (sign_note("text\n", LOG),))


def test_a_note_has_a_signature() -> None:
    with pytest.raises(MalformedNote, match="0 signatures"):
        Note("text\n", ())


# --- verifier keys


@given(st.binary(min_size=32, max_size=32), st.sampled_from([ED25519, COSIGNATURE_V1]))
def test_verifier_keys_round_trip(seed: Any, algorithm: Any) -> None:
    key = SigningKey("example.com/key", algorithm, PrivateKey.from_seed(seed)).verifier_key
    assert VerifierKey.parse(str(key)) == key


VKEY = str(LOG.verifier_key)


@for_each(
    "vkey",
    [
        "",
        "name",
        VKEY + "A",
        VKEY[:-1],
        VKEY + "\n",
        " " + VKEY,
        VKEY.replace("+", "-"),
        VKEY.replace("provider", "pro+vider"),
        VKEY.replace("provider", "pro vider"),
        VKEY.replace("provider", "other"),  # the key id is another name's
        f"{ORIGIN}+{LOG.verifier_key.key_id.hex().upper()}+{VKEY.split('+', 2)[2]}",
        f"{ORIGIN}+00000000+{VKEY.split('+', 2)[2]}",
        f"{ORIGIN}+00000000+{base64.b64encode(bytes([6]) + bytes(range(32))).decode()}",
        f"{ORIGIN}+00000000+{base64.b64encode(bytes([1]) + bytes(32)).decode()}",  # small order
        f"{ORIGIN}+00000000+{base64.b64encode(bytes([1]) + bytes(31)).decode()}",
        "n" * 500 + VKEY,
    ],
)
def test_other_verifier_keys_are_refused(vkey: Any) -> None:
    with pytest.raises(MalformedNote):
        VerifierKey.parse(vkey)


def test_key_names_without_unicode_are_refused() -> None:
    for name in ("", "a b", "a+b", "a\x01", "a\ud800"):
        with pytest.raises(MalformedNote):
            SigningKey(name, ED25519, PrivateKey.generate())


def test_keys_do_not_show_their_secret() -> None:
    assert LOG.private.seed().hex() not in repr(LOG)
    assert repr(LOG.private.seed()) not in repr(LOG)
