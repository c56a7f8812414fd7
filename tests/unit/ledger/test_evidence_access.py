"""The record that confidential evidence was opened: what it says, and what its chain holds."""

from dataclasses import replace
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, MalformedRequest, RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.ledger.messages.custody import (
    BUNDLE,
    FIRST,
    AccessesRejected,
    EvidenceAccess,
)

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
