"""The client against a provider that behaves; what it shows the verifier, and signs for."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import httpx
import pytest
from ragaudit.client.blocking import Client
from ragaudit.client.errors import (
    AnswerRejected,
    BudgetExhausted,
    InvalidReply,
    LessThanDemanded,
    ProviderRefusal,
    StateConflict,
    WrongPin,
)
from ragaudit.client.results import CheckedReceipt, SearchResult
from ragaudit.client.session import Demands
from ragaudit.embedders.registry import load
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.ledger.messages.challenge import Countersignature
from ragaudit.ledger.messages.disputes import (
    Dispute,
    DisputeStatus,
    HolderStatement,
    RegistrationStatement,
    file_digest,
)
from ragaudit.ledger.messages.entries import Registration
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.shown import ShownOpening, ShownWindow

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


# The client against a provider that lies about answers, windows or registrations.

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


@pytest.mark.parametrize("member", ["body", "signature", "sketch", "salt_q", "salt_e"])
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
    with pytest.raises(WrongPin, match="verifier key: the policy names another verifier"):
        opened(
            verifier_key="3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
        ).register()


def test_a_pin_of_another_role_is_named_and_accuses_nobody(opened: Open, provider: Any) -> None:
    keys = provider.policy.keys
    roles = {
        "verdict": keys.verdict, "provider": keys.provider, "log": keys.log.public,
        "cosigner": keys.cosigner.public,
    }  # fmt: skip
    for name, key in roles.items():
        with pytest.raises(WrongPin, match=f"as keys.{name}, not as keys.verifier") as caught:
            opened(verifier_key=key.raw.hex()).register()
        assert not isinstance(caught.value, RejectedError)
        # A window of others could call the true key its verdict key, and offer its own instead.
        assert keys.verifier.raw.hex() not in str(caught.value)
    assert set(provider.calls) == {"window"}


def test_a_window_of_another_policy_is_refused(opened: Open, provider: Any) -> None:
    assert opened(policy_digest=provider.policy.digest.hex(), verifier_key=None).window.pinned
    with pytest.raises(WrongPin, match="policy digest"):
        opened(policy_digest="00" * 32).register()


def registration_lie(member: str, value: Any) -> Callable[[Any], None]:
    def change(reply: Any) -> None:
        if reply["registration"] is not None:
            reply["registration"][member] = value

    return change


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [("salt", "00" * 32, "root"), ("index", 2, "leaf"), ("body", "00", "registration")],
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


# A client that demands something of its window or of answers is never given less in silence.


@lru_cache(maxsize=1)
def unnoised() -> tuple[IntegrityWindow, Any]:
    """A window without noise, played, and what its provider shows of it."""
    window = IntegrityWindow()
    window.play()
    _, salt, body = window.entries[0]
    shown = ShownWindow(
        window=window.window,
        state="open",
        policy=window.policy,
        policy_digest=window.policy.digest,
        countersignature=Countersignature.parse(window.countersignature()),
        opening=ShownOpening(salt, body),
        embedder=window.model.manifest(),
        activations=(),
        versions=(),
        epochs=() if window.policy.epochs else None,
    )
    return window, shown.to_json()


def serves_no_noise(provider: Any) -> str:
    """Have the provider show a window without noise; return its verifier's key."""
    window, shown = unnoised()
    provider.interfere = lambda call, reply: shown if call == "window" else reply
    return window.verifier_key.public.raw.hex()


def test_a_window_without_noise_is_refused_where_privacy_or_anchored_answers_are_demanded(
    opened: Open, options: Callable[..., Any], provider: Any
) -> None:
    key = serves_no_noise(provider)
    demands: list[tuple[dict[str, Any], str]] = [
        ({"privacy": "required"}, "adds no noise, and privacy is required"),
        ({"anchored": True}, "no answer in it is anchored"),
    ]
    for demand, said in demands:
        chosen = {**options(verifier_key=key), **demand}
        for call in ("register", "account"):
            with (
                Client("http://provider", provider.api_key, **chosen) as client,
                pytest.raises(LessThanDemanded, match=said),
            ):
                getattr(client, call)()
    assert set(provider.calls) == {"window"}  # nothing was registered or asked
    client = opened(verifier_key=key)
    assert not client.window.view.policy.noised
    assert not client.anchored  # a state directory alone demands nothing


def test_noise_from_a_published_seed_is_no_privacy(
    options: Callable[..., Any], provider: Any
) -> None:
    seeded = type(provider)(seed="published")
    chosen = options(
        transport=httpx.MockTransport(seeded.handle),
        verifier_key=seeded.policy.keys.verifier.raw.hex(),
    )
    with Client("http://provider", provider.api_key, **chosen) as client:
        assert client.window.view.policy.experiment_seed == "published"
    with (
        Client("http://provider", provider.api_key, **chosen, privacy="required") as client,
        pytest.raises(LessThanDemanded, match="published seed"),
    ):
        client.register()


def test_demands_that_nothing_knows_are_refused_at_once(opened: Open, provider: Any) -> None:
    shares: list[Any] = [-0.1, 1.1, float("nan"), True, "0.5"]
    demands: list[dict[str, Any]] = [{"privacy": "require"}, {"privacy": True}]
    for demand in (*demands, *({"most_withheld": share} for share in shares)):
        with pytest.raises(MalformedError, match="|".join(demand)):
            opened(**demand)
    assert provider.calls == []
    assert opened(privacy="required", most_withheld=0).search("what is it?").withheld == 0


def test_a_provider_cannot_lead_a_client_into_another_window(opened: Open, provider: Any) -> None:
    """The window is looked at once more while its activation is awaited: it must be the same."""
    _, other = unnoised()
    shown: list[Any] = []

    def interfere(call: str, reply: Any) -> Any:
        if call != "window":
            return reply
        shown.append(reply)
        if len(shown) == 1:
            return [{**json.loads(json.dumps(reply)), "activations": []}]
        return other

    provider.interfere = interfere
    client = opened(window=None, allow_unpinned=True, verifier_key=None)
    with pytest.raises(AnswerRejected, match="another policy than before"):
        client.search("what is it?")
    assert len(shown) == 2
    assert not {"promise", "query"} & set(provider.calls)


def test_an_answer_that_withholds_more_than_is_allowed_is_refused() -> None:
    window, _ = unnoised()
    files = [window.receipt_file(asked) for asked in window.asked]
    results = []
    for file in files:
        receipt = CheckedReceipt(file, [], None)
        results.append(SearchResult(file.answer.documents, receipt, 0, 0, receipt.withdrawn))
    counts = [(result.withheld, len(result.documents)) for result in results]
    assert (1, 2) in counts, counts  # the deleted row of the script
    for result in results:
        whole = result.withheld + len(result.documents)
        for share in (0, 0.25, 0.5, 1.0):
            demands = Demands.of({"most_withheld": share})
            if result.withheld <= share * whole:
                demands.check_answer(result)
                continue
            with pytest.raises(LessThanDemanded, match="rows are withheld") as caught:
                demands.check_answer(result)
            assert caught.value.result is result
        Demands.of({}).check_answer(result)
