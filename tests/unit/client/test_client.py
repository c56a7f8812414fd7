"""The client against a provider that behaves; what it shows the verifier, and signs for."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ragaudit.client.blocking import Client
from ragaudit.client.errors import BudgetExhausted, InvalidReply, StateConflict
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.disputes import (
    Dispute,
    DisputeStatus,
    HolderStatement,
    RegistrationStatement,
    file_digest,
)
from ragaudit.ledger.messages.entries import Registration
from ragaudit.ledger.messages.receipts import ReceiptFile

API_KEY = "secret-api-key"
Open = Callable[..., Client]

# Honest providers


@pytest.mark.parametrize("anchored", [True, False])
def test_search_returns_documents_and_a_checked_receipt(opened: Open, anchored: bool) -> None:
    client = opened(anchored=anchored)
    result = client.search("what is it?", top_k=3)
    assert [each.id for each in result.documents] == ["doc 1", "doc 4"]
    assert [each.number for each in result.receipt.checks] == list(range(11))
    assert {each.name for each in result.receipt.not_done} == {"inclusion", "embedder"}
    assert result.remaining == 5
    assert (result.receipt.path is not None) == anchored
    assert API_KEY not in repr(client)


def test_nothing_is_sent_before_the_first_call(opened: Open, provider: Any) -> None:
    opened()
    assert provider.calls == []


@pytest.mark.parametrize(
    ("provider", "warned"), [({"merge_delay": 35}, 0), ({"merge_delay": 36}, 1)],
    indirect=["provider"],
)  # fmt: skip
def test_too_little_time_to_hand_receipts_in_is_said_once(
    opened: Open, caplog: pytest.LogCaptureFixture, warned: int
) -> None:
    client = opened(anchored=False)
    for _ in range(2):
        client.search("what is it?")
    said = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(said) == warned
    assert all("100 s after its end" in each and "needs 101 s" in each for each in said)


def test_counters_and_nonces_run_on(opened: Open) -> None:
    client = opened()
    results = [client.search(f"question {i}", 2) for i in range(3)]
    assert [each.receipt.counter for each in results] == [0, 1, 2]
    nonces = {each.receipt.file.public.query.nonce for each in results}
    assert len(nonces) == 3
    assert len(client.receipts()) == 3


def test_an_embedder_makes_check_nine(opened: Open, toy_embedder: Any) -> None:
    result = opened(embedder=toy_embedder).search("what is it?")
    assert {each.name for each in result.receipt.not_done} == {"inclusion"}


def test_without_a_pin_the_window_is_not_believed_blindly(opened: Open) -> None:
    result = opened(verifier_key=None, allow_unpinned=True).search("what is it?")
    assert result.receipt.checks[0].status == "not done"
    assert "pinned" in result.receipt.checks[0].detail


def test_a_client_without_a_pin_is_not_made(opened: Open, provider: Any) -> None:
    with pytest.raises(MalformedError, match="could show a window of its own") as caught:
        opened(verifier_key=None)
    assert "allow_unpinned=True" in caught.value.expected
    assert provider.calls == []


def test_the_only_served_window_is_found(opened: Open, provider: Any) -> None:
    provider.interfere = lambda call, reply: [reply] if call == "window" else reply
    assert opened(window=None).search("what is it?").documents
    provider.interfere = lambda call, reply: [reply, reply] if call == "window" else reply
    with pytest.raises(StateConflict, match="w1, w1"):
        opened(window=None, anchored=False).search("what is it?")


def test_a_receipt_is_completed_and_kept(opened: Open) -> None:
    receipt = opened().search("what is it?").receipt
    assert not receipt.completed
    receipt.complete()
    assert receipt.completed
    assert receipt.checks[2].status == "done"
    assert receipt.path is not None
    assert ReceiptFile.parse(receipt.path.read_bytes()) == receipt.file


@pytest.mark.parametrize(
    ("query", "top_k"), [("", 1), ("x" * 8193, 1), ("\ud800", 1), ("q", 0), ("q", 6)]
)
def test_impossible_queries_are_refused_here(
    opened: Open, provider: Any, query: str, top_k: int
) -> None:
    with pytest.raises(MalformedError):
        opened().search(query, top_k)
    assert not {"promise", "query"} & set(provider.calls)


def assert_signed_for(client: Client, body: dict[str, Any], kind: str) -> None:
    """The account's statement covers the documents, and its registration comes with it."""
    account, holder = client.account(), HolderStatement.from_json(body["holder"])
    assert account.dispute_key is not None
    holder.verify(PublicKey.from_raw(account.dispute_key))
    holder.verify_documents(body[kind])
    assert (holder.origin, holder.pseudonym) == (client.window.origin, account.pseudonym)
    assert set(body) == {kind, "holder", "registration"}
    registration = Registration.parse(bytes.fromhex(body["registration"]["body"]))
    assert (registration.pseudonym, body["registration"]["index"]) == (account.pseudonym, 1)


def test_only_public_halves_are_submitted(opened: Open, verifier: Any) -> None:
    client = opened()
    result = client.search("what is it?")
    assert client.submit([result.receipt]).accepted == 1
    (call, said), (second, body) = verifier.received
    assert (call, second) == ("statements", "receipts")
    assert body["receipts"] == [result.receipt.file.public.to_json()]
    assert_signed_for(client, body, "receipts")
    assert "what is it" not in json.dumps(verifier.received)
    statement = RegistrationStatement.from_json(said["statement"])
    account = client.account()
    assert account.dispute_key is not None
    statement.verify(PublicKey.from_raw(account.dispute_key))
    assert (statement.pseudonym, statement.anchor) == (account.pseudonym, account.anchor)


def test_a_dispute_shows_a_digest(opened: Open, verifier: Any) -> None:
    client = opened()
    result = client.search("what is it?")
    client.dispute(result.receipt)
    ((call, body),) = verifier.received
    assert call == "disputes"
    assert "what is it" not in json.dumps(body)
    dispute = Dispute.from_json(body["disputes"][0])
    account = client.account()
    assert account.dispute_key is not None
    dispute.verify(PublicKey.from_raw(account.dispute_key))
    assert dispute.file_digest == file_digest(result.receipt.file.to_json())
    assert set(body["registration"]) == {"index", "salt", "body", "proof"}


def test_a_file_is_shown_only_if_its_record_was_not_sampled(opened: Open, verifier: Any) -> None:
    client = opened()
    receipt = client.search("what is it?").receipt
    index = receipt.file.public.index
    for step in (None, 0):  # another file of the query may have been dismissed
        verifier.standing = DisputeStatus(sampled=True, step=step).to_json()
        assert client.settle(receipt) == {"sampled": True, "step": None}
    assert verifier.received == []
    verifier.standing = DisputeStatus(sampled=False, step=0).to_json()
    assert opened().settle(receipt) == {"sampled": False, "step": 0}  # a client of a later process
    assert verifier.received == [(f"disputes/{index}/file", receipt.file.to_json())]
    verifier.standing = {"sampled": 1}
    with pytest.raises(InvalidReply):
        client.settle(receipt)


def test_an_account_without_a_state_directory_disputes_nothing(opened: Open) -> None:
    client = opened(anchored=False, state_dir=None)
    result = client.search("what is it?")
    with pytest.raises(StateConflict, match="no dispute key"):
        client.dispute(result.receipt)


def test_without_a_verifier_nothing_can_be_submitted(opened: Open) -> None:
    client = opened(anchored=False, verifier_url=None)
    with pytest.raises(StateConflict, match="no verifier"):
        client.submit([client.search("what is it?").receipt])


def test_an_exhausted_budget_carries_the_refusal(opened: Open, verifier: Any) -> None:
    client = opened()
    for number in range(6):
        client.search(f"question {number}")
    with pytest.raises(BudgetExhausted) as caught:
        client.search("one more")
    refusal = caught.value.refusal
    assert refusal is not None
    assert refusal["counter"] == 6
    client.submit_refusal(refusal)
    ((call, body),) = verifier.received
    assert (call, body["refusals"]) == ("refusals", [refusal])
    assert_signed_for(client, body, "refusals")


def test_what_has_no_proof_is_submitted_first_and_what_is_of_others_unsigned(
    opened: Open, verifier: Any
) -> None:
    client = opened()
    completed, pending = (client.search(text).receipt for text in ("one", "two"))
    completed.complete()
    record = replace(pending.file.public.query, pseudonym=bytes(32))
    foreign = replace(pending.file, public=replace(pending.file.public, body=record.encode()))
    assert client.submit([foreign, completed, pending]).accepted == 3
    bodies = [body for call, body in verifier.received if call == "receipts"]
    halves = [each.public.to_json() for each in (pending.file, completed.file, foreign)]
    assert [body["receipts"] for body in bodies] == [[each] for each in halves]
    assert_signed_for(client, bodies[0], "receipts")
    assert_signed_for(client, bodies[1], "receipts")
    assert set(bodies[2]) == {"receipts"}
    with pytest.raises(MalformedError):
        client.submit_refusal({"format": "ragaudit/v1/receipt"})


def test_a_registration_that_the_provider_shows_later_keeps_nothing_back(
    opened: Open, provider: Any, verifier: Any
) -> None:
    client = opened()
    receipt = client.search("what is it?").receipt
    shown = client.account().to_json()["registration"]
    client.close()
    provider.interfere = lambda call, reply: (
        {**reply, "registration": {**shown, "proof": "no proof"}} if call == "account" else reply
    )
    with opened() as later:
        assert later.submit([receipt]).accepted == 1
    registrations = [body["registration"] for _, body in verifier.received]
    assert all(each["proof"].startswith("c2sp.org/tlog-proof@v1") for each in registrations)


def test_an_account_without_a_state_directory_signs_for_nothing(
    opened: Open, verifier: Any
) -> None:
    client = opened(anchored=False, state_dir=None)
    receipt = client.search("what is it?").receipt
    assert client.submit([receipt]).accepted == 1
    assert verifier.received == [("receipts", {"receipts": [receipt.file.public.to_json()]})]
