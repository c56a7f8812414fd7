"""Who reads evidence, what is submitted, and what reading a message may take."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from hostile_json import with_each_list_long
from memory_taken import peak
from message_examples import examples, has_a_list, messages
from ragaudit.encoding import canonical_json
from ragaudit.encoding.canonical_json import loads
from ragaudit.encoding.errors import MalformedError, MalformedRequest, RagauditError, RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages import bodies
from ragaudit.ledger.messages.bodies import AccessBody, Submission
from ragaudit.ledger.messages.custody import BUNDLE, FIRST, AccessesRejected, EvidenceAccess
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.policy_terms import PolicyMember
from ragaudit.ledger.messages.receipts import GeneratedFile, query_index
from ragaudit.ledger.messages.shown import RegistrationEntry

KEY = PrivateKey.from_seed(b"v" * 32)
OTHER = PrivateKey.from_seed(b"o" * 32)
ORIGIN = "rag.example/ragaudit/w1"
ACCOUNT = "account/" + "ab" * 32


def chain(*whats: str, key: PrivateKey = KEY) -> list[EvidenceAccess]:
    found: list[EvidenceAccess] = []
    for number, what in enumerate(whats):
        found.append(
            EvidenceAccess.issue(
                key,
                origin=ORIGIN,
                before=found[-1] if found else None,
                what=what,
                reader="A. Ito",
                reason=f"complaint {number}",
                time=1000 + number,
            )
        )
    return found


def verify(accesses: list[EvidenceAccess]) -> None:
    EvidenceAccess.verify_all(accesses, KEY.public, origin=ORIGIN)


def resigned(access: EvidenceAccess, **changes: Any) -> EvidenceAccess:
    return replace(access, **changes).signed(KEY)


def test_a_list_as_it_was_kept_is_accepted() -> None:
    accesses = chain(BUNDLE, ACCOUNT, BUNDLE)
    verify([])
    verify(accesses)
    assert accesses[0].previous == FIRST
    assert [access.number for access in accesses] == [0, 1, 2]


def test_it_is_read_as_it_was_written() -> None:
    for access in chain(BUNDLE, ACCOUNT):
        data = canonical_json.dumps(access.to_json())
        assert EvidenceAccess.from_json(canonical_json.loads(data)) == access
        assert access.to_json()["format"] == "ragaudit/v1/evidence-access"


@pytest.mark.parametrize("gone", [0, 1])
def test_an_access_that_was_taken_out_is_missed(gone: int) -> None:
    accesses = chain(BUNDLE, ACCOUNT, BUNDLE)
    del accesses[gone]
    with pytest.raises(AccessesRejected, match="does not follow"):
        verify(accesses)


def test_accesses_in_another_order_are_rejected() -> None:
    first, second = chain(BUNDLE, ACCOUNT)
    with pytest.raises(AccessesRejected, match="does not follow"):
        verify([second, first])


@pytest.mark.parametrize(
    "changes", [{"reader": "B. Ito"}, {"reason": "none"}, {"time": 1}, {"what": BUNDLE}]
)
def test_a_changed_access_is_rejected(changes: dict[str, Any]) -> None:
    first, second = chain(ACCOUNT, ACCOUNT)
    with pytest.raises(SignatureRejected):
        verify([replace(first, **changes), second])


def test_an_access_that_was_signed_again_breaks_the_chain() -> None:
    first, second = chain(BUNDLE, BUNDLE)
    with pytest.raises(AccessesRejected, match="does not follow"):
        verify([resigned(first, reason="another"), second])


def test_times_that_go_back_are_rejected() -> None:
    first, second = chain(BUNDLE, BUNDLE)
    with pytest.raises(AccessesRejected, match="earlier"):
        verify([first, resigned(second, time=first.time - 1)])


def test_another_key_and_another_window_are_rejected() -> None:
    with pytest.raises(SignatureRejected):
        verify(chain(BUNDLE, key=OTHER))
    with pytest.raises(RejectedError, match="another origin"):
        EvidenceAccess.verify_all(chain(BUNDLE), KEY.public, origin="rag.example/ragaudit/w2")


@for_each(
    ("name", "value"),
    [
        ("what", "everything"),
        ("what", "account/AB"),
        ("what", "account/" + "ab" * 32 + "\n"),
        ("reader", ""),
        ("reader", "   "),
        ("reader", "x" * 201),
        ("reason", "two\nlines"),
        ("reason", "x" * 1001),
        ("number", -1),
        ("number", True),
        ("previous", "ab"),
        ("more", 1),
    ],
)
def test_other_members_are_refused(name: str, value: object) -> None:
    document = {**chain(BUNDLE)[0].to_json(), name: value}
    with pytest.raises(MalformedError):
        EvidenceAccess.from_json(document)


@for_each(
    "body",
    [
        {},
        {"reader": "A. Ito"},
        {"reader": "A. Ito", "reason": ""},
        {"reader": "A. Ito", "reason": "\t "},
        {"reader": "A. Ito", "reason": "ok\x00"},
        {"reader": 1, "reason": "complaint"},
        {"reader": "A. Ito", "reason": "complaint", "more": 1},
    ],
)
def test_who_gives_no_reason_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(MalformedRequest):
        AccessBody.from_json(body)


def test_a_body_is_read_as_it_was_written() -> None:
    body = AccessBody("A. Ito", "complaint 17")
    assert AccessBody.from_json(body.to_json()) == body


def test_submissions_add_up() -> None:
    assert Submission.from_json({"accepted": 3, "known": 1}) == Submission(3, 1)
    assert Submission.total([Submission(3, 1), Submission(2, 0)]) == Submission(5, 1)
    assert Submission.total([]) == Submission(0, 0)


@for_each(
    "reply",
    [
        None, [], {}, {"accepted": 1}, {"accepted": 1, "known": True}, {"accepted": -1, "known": 0},
        {"accepted": "1", "known": 0}, {"accepted": 1, "known": 0, "more": 0},
    ],
)  # fmt: skip
def test_a_reply_of_another_form_is_no_count(reply: Any) -> None:
    with pytest.raises(MalformedRecord):
        Submission.from_json(reply)


def test_a_file_of_any_form_names_its_query() -> None:
    assert query_index({"public": {"index": 7, "forged": True}, "answer": None}) == 7
    words = {"format": GeneratedFile.FORMAT, "public": {"index": 9, "charge": {"index": 7}}}
    assert query_index(words) == 7


@pytest.mark.parametrize("file", [{}, {"public": 7}, {"public": {}}, {"public": {"index": "7"}}])
def test_a_file_without_an_index_names_no_query(file: dict[str, Any]) -> None:
    with pytest.raises(MalformedRecord, match="public"):
        query_index(file)
    with pytest.raises(MalformedRecord, match="public"):
        query_index({**file, "format": GeneratedFile.FORMAT})


SIZE = 2**18
# For a byte of JSON at this size; the most have policies, which are encoded again, and CPython's
# encoder keeps the pieces of 100,000 items before it joins them.
MESSAGE = 12


@pytest.fixture(scope="module")
def documents() -> dict[Any, Any]:
    return examples()


def test_every_message_with_a_list_has_an_example(documents: dict[Any, Any]) -> None:
    """A new message belongs to the test below by itself, once there is a document of it."""
    without = [kind for kind in messages() if kind not in documents]
    assert [kind.__name__ for kind in without if has_a_list(kind)] == []
    # Terms are read in policies, of which there are many examples.
    assert len([kind for kind in without if not issubclass(kind, PolicyMember)]) < 12


def test_reading_a_long_list_takes_memory_in_proportion(documents: dict[Any, Any]) -> None:
    """What JSON itself takes is test_json_structure's; this is what a message makes of it."""
    tried = set()
    for kind, document in documents.items():
        for place, hostile in with_each_list_long(document, SIZE):
            size = len(json.dumps(hostile))

            def read(hostile: Any = hostile, kind: Any = kind) -> object:
                with suppress(RagauditError):
                    return kind.from_json(hostile)
                return None

            taken = peak(read, MESSAGE * size)
            assert taken <= MESSAGE * size, f"{kind.__name__} {place}: {taken / size:.1f}"
            tried.add(kind.__name__)
    assert {"Challenge", "ReceiptsBody", "EntriesBody", "Replay", "WindowChain"} <= tried


REGISTRATION = RegistrationEntry(1, b"s" * 32, b"body", "proof")
SIGNED = {"signature": "00"}
BODIES: tuple[bodies.Body, ...] = (
    bodies.WindowBody({"format": "policy"}, {"format": "embedder"}),
    bodies.OpeningBody(b"opening", b"s" * 32, "note"),
    bodies.EntriesBody((Entry(3, "close", b"s" * 32, b"body"),)),
    bodies.CloseBody("note"),
    bodies.ReceiptsBody((SIGNED,), holder=SIGNED, registration=REGISTRATION),
    bodies.RefusalsBody((SIGNED,), holder=SIGNED, registration=REGISTRATION),
    bodies.ClaimBody(SIGNED, b"n" * 32, REGISTRATION),
    bodies.DisputesBody((SIGNED,), REGISTRATION),
    bodies.StatementBody(SIGNED, REGISTRATION),
    bodies.FindingBody(SIGNED, SIGNED),
    bodies.CaseBody(SIGNED, SIGNED),
)
OPTIONAL = {"holder", "registration"}
REASON = "missing|unknown|not |another|text|hexadecimal"


def of(body: bodies.Body, document: Any) -> bodies.Body:
    return type(body).from_json(document)


@for_each("body", BODIES)
def test_round_trips(body: bodies.Body) -> None:
    assert of(body, loads(body.encode())) == body


@for_each("body", BODIES)
def test_members_are_exactly_these(body: bodies.Body) -> None:
    document = body.to_json()
    for name in document:
        less = {key: value for key, value in document.items() if key != name}
        if name in OPTIONAL:
            assert of(body, less) == of(body, {**less, name: None})
            assert of(body, less).to_json() == less
        else:
            with pytest.raises(MalformedError, match="missing member"):
                of(body, less)
        for wrong in (1, [1], "\ud800"):
            with pytest.raises(MalformedError, match=REASON):
                of(body, {**document, name: wrong})
    with pytest.raises(MalformedError, match="unknown member"):
        of(body, {**document, "more": 1})
    outsiders: tuple[Any, ...] = (None, [], "text")
    for outsider in outsiders:
        with pytest.raises(MalformedError, match="not an object"):
            of(body, outsider)


def test_a_batch_is_bounded() -> None:
    full = bodies.ReceiptsBody((SIGNED,) * bodies.MAX_BATCH)
    assert of(full, full.to_json()) == full
    with pytest.raises(MalformedError, match="list"):
        of(full, {"receipts": [SIGNED] * (bodies.MAX_BATCH + 1)})


def test_a_registration_without_its_proof_shows_nothing() -> None:
    shown = replace(REGISTRATION, proof=None).to_json()
    with pytest.raises(MalformedError, match="no proof"):
        bodies.StatementBody.from_json({"statement": SIGNED, "registration": shown})
