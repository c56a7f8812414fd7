"""Who reads evidence, what is submitted, and what reading a message may take."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hostile_json import with_each_list_long
from memory_taken import peak
from message_examples import examples, has_a_list, messages
from ragaudit.encoding.errors import MalformedError, RagauditError, RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages import bodies
from ragaudit.ledger.messages.bodies import Submission
from ragaudit.ledger.messages.custody import BUNDLE, FIRST, AccessesRejected, EvidenceAccess
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


def test_submissions_add_up() -> None:
    assert Submission.from_json({"accepted": 3, "known": 1}) == Submission(3, 1)
    assert Submission.total([Submission(3, 1), Submission(2, 0)]) == Submission(5, 1)
    assert Submission.total([]) == Submission(0, 0)


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


def test_a_registration_without_its_proof_shows_nothing() -> None:
    shown = replace(REGISTRATION, proof=None).to_json()
    with pytest.raises(MalformedError, match="no proof"):
        bodies.StatementBody.from_json({"statement": SIGNED, "registration": shown})
