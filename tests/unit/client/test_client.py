"""The client against a provider that behaves, crashes, refuses, or lies."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client.blocking import Client
from ragaudit.client.errors import (
    AnswerRejected,
    BudgetExhausted,
    InvalidReply,
    PromiseUnanswered,
    ProviderRefusal,
    ServiceUnreachable,
    StateConflict,
)
from ragaudit.client.revealing import Revealing
from ragaudit.client.state import StateDirectory
from ragaudit.embedders.registry import load
from ragaudit.encoding.canonical_json import loads
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.disputes import (
    Dispute,
    DisputeStatus,
    HolderStatement,
    RegistrationStatement,
    file_digest,
)
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.records import Registration

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


def test_counters_and_nonces_run_on(opened: Open) -> None:
    client = opened()
    results = [client.search(f"question {i}", 2) for i in range(3)]
    assert [each.receipt.counter for each in results] == [0, 1, 2]
    nonces = {each.receipt.file.public.record.nonce for each in results}
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
    verifier.standing = DisputeStatus(sampled=True, step=None).to_json()
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


@pytest.mark.parametrize(
    ("query", "top_k"), [("", 1), ("x" * 8193, 1), ("\ud800", 1), ("q", 0), ("q", 6)]
)
def test_impossible_queries_are_refused_here(
    opened: Open, provider: Any, query: str, top_k: int
) -> None:
    with pytest.raises(MalformedError):
        opened().search(query, top_k)
    assert not {"promise", "query"} & set(provider.calls)


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
    record = replace(pending.file.public.record, pseudonym=bytes(32))
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


# Crashes


class Crash(BaseException):
    """The client's process ends here."""


def crash(*_: Any, **__: Any) -> Any:
    raise Crash


@pytest.mark.parametrize("moment", ["before the promise", "after the promise", "before the answer"])
def test_a_crash_is_survived_with_the_same_promise_and_nonce(
    opened: Open, provider: Any, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    first.search("question 0")
    with monkeypatch.context() as patch:
        if moment == "before the promise":
            patch.setattr(StateDirectory, "keep_promise", crash)
        elif moment == "after the promise":
            patch.setattr(Revealing, "_begin", crash)
        else:
            patch.setattr(StateDirectory, "keep_answer", crash)
        with pytest.raises(Crash):
            first.search("question 1")
    first.close()
    promised = provider.pending[1].promise
    second = opened()
    resumed = second.resume()
    assert (resumed is None) == (moment == "before the promise")
    result = resumed or second.search("question 1")
    assert result.receipt.counter == 1
    assert result.receipt.file.request.query == "question 1"
    assert result.receipt.file.public.record.promised() == promised.record
    assert second.search("question 2").receipt.counter == 2
    assert provider.counter == 3


def test_search_finishes_the_pending_promise_first(
    opened: Open, provider: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    first.register()
    with monkeypatch.context() as patch:
        patch.setattr(Revealing, "_begin", crash)
        with pytest.raises(Crash):
            first.search("question 0")
    first.close()
    second = opened()
    assert second.search("question 1").receipt.counter == 1
    assert [each.request.query for each in second.receipts()] == ["question 0", "question 1"]


def test_the_promise_is_durable_before_the_nonce_is_sent(opened: Open, provider: Any) -> None:
    client = opened()
    client.register()
    seen = []

    def look(call: str, reply: Any) -> Any:
        if call == "reveal":
            (path,) = client.asynchronous._session.state.directory.glob("promise.json")  # type: ignore[union-attr]
            seen.append(loads(path.read_bytes())["promise"])
        return reply

    provider.interfere = look
    client.search("what is it?")
    assert seen == [provider.pending[0].promise.to_json()]


def test_the_seed_is_durable_before_the_anchor_is_sent(
    opened: Open, provider: Any, tmp_path: Path
) -> None:
    seen: list[Path] = []

    def look(call: str, reply: Any) -> Any:
        if call == "registration":
            seen.extend((tmp_path / "state").rglob("registration.json"))
        return reply

    provider.interfere = look
    opened().register()
    assert len(seen) == 1


# Providers that do not answer


def silent(call_name: str) -> Callable[[str, Any], Any]:
    def interfere(call: str, reply: Any) -> Any:
        if call == call_name:
            raise httpx.ReadTimeout("no answer")
        return reply

    return interfere


def test_an_unanswered_promise_goes_to_the_verifier(
    opened: Open, provider: Any, verifier: Any
) -> None:
    client = opened()
    client.register()
    provider.interfere = silent("reveal")
    with pytest.raises(PromiseUnanswered, match="the verifier has the claim") as caught:
        client.search("what is it?")
    assert caught.value.claimed
    (call, claim), *_ = verifier.received
    assert call == "claims"
    assert Promise.from_json(claim["promise"]) == provider.pending[0].promise
    assert bytes.fromhex(claim["nonce"]) == provider.pending[0].nonce
    provider.interfere = lambda _call, reply: reply
    result = client.resume()
    assert result is not None
    assert result.receipt.file.request.query == "what is it?"


def test_a_refusal_after_the_nonce_is_a_claim_too(
    opened: Open, provider: Any, verifier: Any
) -> None:
    client = opened()
    client.register()
    closed = httpx.Response(409, json={"title": "Closed"})
    provider.interfere = lambda call, reply: closed if call == "reveal" else reply
    with pytest.raises(PromiseUnanswered):
        client.search("what is it?")
    assert verifier.received[0][0] == "claims"


def test_a_claim_that_nobody_takes_is_said_to_be_so(
    opened: Open, provider: Any, verifier: Any
) -> None:
    verifier.refuses = True
    client = opened()
    client.register()
    provider.interfere = silent("reveal")
    with pytest.raises(PromiseUnanswered, match="did not take the claim") as caught:
        client.search("what is it?")
    assert not caught.value.claimed


def test_a_registration_that_the_provider_kept_back_is_shown_with_the_claim(
    opened: Open, provider: Any, verifier: Any
) -> None:
    """Also when the provider says nothing more: the client keeps its registration."""
    client = opened()
    client.register()
    provider.interfere = silent("reveal")
    with pytest.raises(PromiseUnanswered, match="the verifier has the claim"):
        client.search("what is it?")
    calls = [call for call, _ in verifier.received]
    assert calls == ["claims"]
    shown = verifier.received[0][1]["registration"]
    assert set(shown) == {"index", "salt", "body", "proof"}
    assert Registration.parse(bytes.fromhex(shown["body"])).window == "w1"


def test_no_reply_to_a_plain_query_is_not_repeated(opened: Open, provider: Any) -> None:
    client = opened(anchored=False)
    client.register()
    provider.interfere = silent("query")
    with pytest.raises(ServiceUnreachable):
        client.search("what is it?")
    assert provider.calls.count("query") == 1


def test_a_proof_that_is_not_due_yet_is_no_rejection(opened: Open, provider: Any) -> None:
    receipt = opened().search("what is it?").receipt
    provider.proofs_ready = False
    with pytest.raises(ServiceUnreachable, match="no inclusion proof yet"):
        receipt.complete(timeout_seconds=0)


def test_an_overdue_proof_is_a_lie_only_if_the_record_is_under_a_cosigned_checkpoint(
    opened: Open, provider: Any, verifier: Any
) -> None:
    ahead = 0
    client = opened(clock=lambda: time.time_ns() // 10**6 + ahead)
    receipt = client.search("what is it?").receipt
    provider.proofs_ready = False
    ahead = 11_000
    with pytest.raises(ServiceUnreachable):  # the verifier has cosigned nothing yet
        receipt.complete(timeout_seconds=0)
    verifier.cosigned = provider.head()
    with pytest.raises(AnswerRejected, match="merge delay") as caught:
        receipt.complete(timeout_seconds=0)
    assert caught.value.evidence is not None
    verifier.refuses_all = True
    with pytest.raises(ServiceUnreachable):  # a verifier that is away is nobody's lie
        receipt.complete(timeout_seconds=0)


# State directories


def test_a_restored_directory_is_noticed(opened: Open, tmp_path: Path) -> None:
    import shutil

    client = opened()
    client.search("question 0")
    client.close()
    shutil.copytree(tmp_path / "state", tmp_path / "backup")
    client = opened()
    client.search("question 1")
    client.close()
    with pytest.raises(StateConflict, match="logged 2 records, this client 1"):
        opened(state_dir=tmp_path / "backup").search("question 1 again")


def test_another_directory_cannot_take_over(opened: Open, tmp_path: Path) -> None:
    opened().search("question 0")
    with pytest.raises(StateConflict, match="no keys for it"):
        opened(state_dir=tmp_path / "other").search("question 1")


def test_a_plain_account_cannot_become_anchored(opened: Open) -> None:
    opened(anchored=False).search("question 0")
    with pytest.raises(StateConflict, match="registered"):
        opened().search("question 1")


def test_an_anchored_account_cannot_become_plain(opened: Open) -> None:
    opened().search("question 0")
    with pytest.raises(StateConflict, match="registered with"):
        opened(anchored=False).search("question 1")


def test_answers_that_a_plain_client_missed_are_counted(opened: Open) -> None:
    one, two = opened(anchored=False), opened(anchored=False)
    assert one.search("question 0").missed == 0
    two.search("question 1")
    two.search("question 2")
    assert one.search("question 3").missed == 2


# Providers that lie


def altered(call_name: str, change: Callable[[Any], None]) -> Callable[[str, Any], Any]:
    def interfere(call: str, reply: Any) -> Any:
        if call == call_name:
            reply = json.loads(json.dumps(reply))
            change(reply)
        return reply

    return interfere


def forged_document(reply: Any) -> None:
    reply["answer"]["documents"][0]["content"] = "forged"


def other_documents(reply: Any) -> None:
    reply["answer"]["documents"].pop()


def swapped_order(reply: Any) -> None:
    reply["answer"]["documents"].reverse()


def no_receipt(reply: Any) -> None:
    del reply["public"]


def of_another_question(reply: Any) -> None:
    reply["request"]["query"] = "what nobody asked"


def floats(reply: Any) -> None:
    reply["answer"]["documents"][0]["position"] = 1.0


LIES = [forged_document, other_documents, swapped_order, no_receipt, of_another_question, floats]


@pytest.mark.parametrize("lie", LIES)
def test_a_false_answer_is_refused_and_kept(opened: Open, provider: Any, lie: Any) -> None:
    client = opened()
    client.register()
    provider.interfere = altered("reveal", lie)
    with pytest.raises(AnswerRejected) as caught:
        client.search("what is it?")
    assert caught.value.evidence is not None
    assert json.loads(caught.value.evidence.read_bytes()) == caught.value.received
    provider.interfere = lambda _call, reply: reply
    assert client.resume() is not None  # the promise stands: the right answer is still due


@pytest.mark.parametrize("lie", LIES)
def test_a_false_answer_to_a_plain_query_is_refused(opened: Open, provider: Any, lie: Any) -> None:
    client = opened(anchored=False)
    provider.interfere = altered("query", lie)
    with pytest.raises(AnswerRejected):
        client.search("what is it?")


@pytest.mark.parametrize("member", ["body", "signature", "sketch", "query", "salt_e"])
def test_no_nonce_is_revealed_for_a_false_promise(opened: Open, provider: Any, member: str) -> None:
    def lie(reply: Any) -> None:
        text = reply[member]
        reply[member] = text[:-1] + ("0" if text[-1] != "0" else "1")

    client = opened()
    provider.interfere = altered("promise", lie)
    with pytest.raises(AnswerRejected):
        client.search("what is it?")
    assert "reveal" not in provider.calls


def window_lie(*path: Any, value: Any) -> Callable[[Any], None]:
    def change(reply: Any) -> None:
        for each in path[:-1]:
            reply = reply[each]
        reply[path[-1]] = value(reply[path[-1]]) if callable(value) else value

    return change


@pytest.mark.parametrize(
    "lie",
    [
        window_lie("policy", "sigma", value="0.5"),
        window_lie("policy", "keys", "provider", value="66" * 32),
        window_lie("policy_digest", value="00" * 32),
        window_lie("countersignature", "time", value=lambda t: t + 1),
        window_lie("countersignature", "activation_anchor", value="00" * 32),
        window_lie("countersignature", "signature", value="00" * 64),
        window_lie("opening", "salt", value="00" * 32),
        window_lie("opening", "body", value=lambda body: body[:-2] + "ff"),
        window_lie("embedder", "dimension", value=9),
        window_lie("activations", 0, "covered_size", value=3),
        window_lie("activations", 0, "preimage", value="00" * 32),
        window_lie("window", value="w2"),
    ],
)
def test_a_window_other_than_countersigned_is_refused(
    opened: Open, provider: Any, lie: Callable[[Any], None]
) -> None:
    provider.interfere = altered("window", lie)
    with pytest.raises(AnswerRejected):
        opened().register()
    assert "registration" not in provider.calls


def test_a_window_of_another_verifier_is_refused(opened: Open) -> None:
    with pytest.raises(AnswerRejected, match="verifier key"):
        opened(
            verifier_key="3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
        ).register()


def test_a_window_of_another_policy_is_refused(opened: Open, provider: Any) -> None:
    assert opened(policy_digest=provider.policy.digest.hex(), verifier_key=None).window.pinned
    with pytest.raises(AnswerRejected, match="policy digest"):
        opened(policy_digest="00" * 32).register()


def registration_lie(member: str, value: Any) -> Callable[[Any], None]:
    def change(reply: Any) -> None:
        if reply["registration"] is not None:
            reply["registration"][member] = value

    return change


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("salt", "00" * 32, "root"),
        ("index", 2, "leaf"),
        ("body", "00", "registration"),
    ],
)
def test_a_registration_that_is_not_in_the_log_is_refused(
    opened: Open, provider: Any, member: str, value: Any, message: str
) -> None:
    provider.interfere = altered("account", registration_lie(member, value))
    with pytest.raises(AnswerRejected, match=message):
        opened().search("what is it?")
    assert "promise" not in provider.calls


def test_a_registration_with_another_anchor_is_refused(opened: Open, provider: Any) -> None:
    def lie(reply: Any) -> None:
        if reply["registration"] is not None:
            reply["slot"] = 1

    provider.interfere = altered("account", lie)
    with pytest.raises(AnswerRejected, match="slot"):
        opened().search("what is it?")


def test_an_embedder_that_is_not_the_committed_one_is_refused(opened: Open) -> None:
    with pytest.raises(StateConflict, match="not the committed embedder"):
        opened(embedder=load()).search("what is it?")


def test_a_problem_document_is_passed_on(opened: Open, provider: Any) -> None:
    problem = httpx.Response(409, json={"title": "Closed", "detail": "the window is closed"})
    provider.interfere = lambda call, reply: problem if call == "promise" else reply
    with pytest.raises(ProviderRefusal, match="the window is closed"):
        opened().search("what is it?")
