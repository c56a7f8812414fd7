"""The client against a provider that lies about answers, windows or registrations."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from ragaudit.client.blocking import Client
from ragaudit.client.errors import AnswerRejected, ProviderRefusal, StateConflict, WrongPin
from ragaudit.embedders.registry import load
from ragaudit.encoding.errors import RejectedError

Open = Callable[..., Client]


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
