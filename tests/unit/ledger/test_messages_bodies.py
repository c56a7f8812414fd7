"""Bodies of calls: read back as they were written, one form, whatever is optional left out."""

from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.canonical_json import loads
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages import bodies
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.shown import RegistrationEntry

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
