"""Anchored accounts: promises, nonces, retries, claims; all ten checks of a receipt."""

from typing import Any

import numpy as np
import pytest
from databases import ON_EACH_ENGINE_SLOWLY
from ragaudit.client.checks import CoreOperations
from ragaudit.embedders.base import embed_quantised
from ragaudit.ledger.messages.entries import Opening, Record
from ragaudit.ledger.messages.promises import ClaimsPage, Promise
from ragaudit.ledger.messages.receipt_check import AccountView, WindowView, check_file
from ragaudit.prover.errors import VerifierMessageRejected
from ragaudit.prover.window.records import note_nonce
from ragaudit.verifier.service import intake

pytestmark = ON_EACH_ENGINE_SLOWLY


def test_all_ten_checks_of_an_anchored_receipt(make_scenario: Any, embedder: Any) -> None:
    scenario = make_scenario(embedder=lambda _: embedder)
    scenario.open()
    promised = scenario.promise(0, query="a broken product")
    assert promised.status_code == 200, promised.text
    promise = Promise.from_json(promised.json())
    promise.verify(scenario.policy().keys.provider)
    value = scenario.reveal(0).json()
    scenario.service.driver.checkpoint("w1")
    public = value["public"]
    public["proof"] = scenario.api.get(f"/v1/windows/w1/receipts/{public['index']}/proof").text
    window = scenario.api.get("/v1/windows/w1").json()
    account = scenario.api.get("/v1/windows/w1/account", headers=scenario.headers("bob")).json()
    assert value["request"] == {
        "counter": 0, "filter": "", "kind": "text", "query": "a broken product", "top_k": 2,
    }  # fmt: skip
    steps = check_file(
        value,
        WindowView(
            scenario.policy(),
            Opening.parse(bytes.fromhex(window["opening"]["body"])),
            [each["covered_size"] for each in window["activations"]],
        ),
        CoreOperations(),
        anchor=scenario.chains["bob"].anchor,
        promise=promise,
        embed=lambda texts: embed_quantised(embedder, texts).tolist(),
        account=AccountView(
            tenant="one",
            pseudonym=bytes.fromhex(account["pseudonym"]),
            slot=account["slot"],
            registration_index=account["registration"]["index"],
            counter=0,
        ),
    )
    assert [each.status for each in steps] == ["done"] * 10


def test_retries_are_the_same_bit_for_bit(scenario: Any) -> None:
    scenario.open()
    promised = scenario.promise(0).json()
    assert scenario.promise(0).json() == promised
    answered = scenario.reveal(0)
    assert answered.status_code == 200
    size = scenario.service.open_windows.get("w1").log.entries.head().size
    assert scenario.reveal(0).json() == answered.json()
    scenario.restart()
    assert scenario.reveal(0).json() == answered.json()
    assert scenario.service.open_windows.get("w1").log.entries.head().size == size


def test_one_counter_is_never_promised_twice(scenario: Any) -> None:
    scenario.open()
    promised = scenario.promise(0, query="bread").json()
    other = scenario.promise(0, query="trains")
    assert other.status_code == 409
    assert other.json()["promise"] == promised
    # True to the second: until then the promise stands, from then on there is another.
    policy, made = scenario.policy(), Promise.from_json(promised).promised.time
    end = made + policy.promise_life + 2000 * policy.clock_skew_seconds
    instant = scenario.clock.now + 1000 * int(other.headers["Retry-After"])
    assert end < instant <= end + 1000
    scenario.restart()
    assert scenario.promise(0, query="trains").status_code == 409
    assert scenario.promise(0, query="bread").json() == promised


def test_another_promise_can_be_had_when_the_refusal_says_so(scenario: Any) -> None:
    scenario.open()
    first = scenario.promise(0, query="bread").json()
    waiting = int(scenario.promise(0, query="trains").headers["Retry-After"])
    scenario.clock.now += 1000 * (waiting - 1)
    assert scenario.promise(0, query="bread").json() == first
    scenario.clock.now += 1000
    assert scenario.promise(0, query="trains").json()["request"]["query"] == "trains"


def test_counters_and_nonces_that_are_wrong(scenario: Any) -> None:
    scenario.open()
    assert scenario.promise(1).status_code == 409
    assert scenario.reveal(0).status_code == 409  # nothing promised
    scenario.promise(0)
    assert scenario.reveal(0, nonce=bytes(32)).status_code == 422
    assert scenario.reveal(0, nonce=scenario.chains["bob"].nonce(1)).status_code == 422
    assert scenario.reveal(0).status_code == 200
    assert scenario.promise(0).status_code == 409
    assert scenario.promise(1).status_code == 200


def test_an_old_promise_is_not_answered(scenario: Any) -> None:
    scenario.open()
    scenario.promise(0)
    scenario.clock.now += 301_000
    refused = scenario.reveal(0)
    assert refused.status_code == 409 and "too old" in refused.json()["detail"]


def expire(scenario: Any, promised: dict[str, Any]) -> None:
    """Go to where nobody takes a claim of the promise any more, by any clock within the skew."""
    made = Promise.from_json(promised).promised.time
    policy = scenario.policy()
    scenario.clock.now = made + policy.promise_life + 2000 * policy.clock_skew_seconds + 1


def test_an_expired_promise_that_nobody_claimed_is_superseded(scenario: Any) -> None:
    scenario.open()
    first = scenario.promise(0, query="bread").json()
    scenario.clock.now += 301_000  # too old to be answered, and the verifier may still take a claim
    assert scenario.promise(0, query="trains").status_code == 409
    expire(scenario, first)
    second = scenario.promise(0, query="trains").json()
    assert second["request"]["query"] == "trains"
    assert Promise.from_json(second).promised.time > Promise.from_json(first).promised.time
    scenario.restart()
    assert scenario.promise(0, query="trains").json() == second
    assert scenario.reveal(0).status_code == 200
    assert scenario.promise(1).status_code == 200


def test_a_promise_whose_nonce_was_seen_is_never_superseded(scenario: Any) -> None:
    """The provider could evaluate the noise: another promise would be another draw."""
    scenario.open()
    first = scenario.promise(0).json()
    live = scenario.service.open_windows.get("w1")
    with live.committing(scenario.service.store) as transaction:
        note_nonce(transaction, "w1", "bob", 0, scenario.chains["bob"].nonce(0))
    expire(scenario, first)
    refused = scenario.promise(0, query="trains")
    assert refused.status_code == 409 and "nonce was revealed" in refused.json()["detail"]


def test_a_claimed_promise_is_never_superseded(scenario: Any) -> None:
    scenario.open()
    first = scenario.promise(0).json()
    scenario.service.driver.step("w1")  # hands the registrations over
    claim = {"promise": first, "nonce": scenario.chains["bob"].nonce(0).hex()}
    assert scenario.verifier.post("/v1/windows/w1/claims", json=claim).status_code == 200
    expire(scenario, first)
    assert scenario.promise(0, query="trains").status_code == 409
    (record,) = close(scenario)
    Promise.from_json(first).verify_kept(record)


def test_without_the_verifier_nothing_is_superseded(scenario: Any) -> None:
    scenario.open()
    first = scenario.promise(0).json()
    expire(scenario, first)
    scenario.transport.down = True
    assert scenario.promise(0).status_code == 503
    scenario.transport.down = False
    assert scenario.promise(0).status_code == 200


def test_no_promise_is_made_when_it_could_not_be_claimed(scenario: Any) -> None:
    scenario.open()
    policy = scenario.policy()
    assert policy.last_promise == 1000 * (policy.end - 60)
    scenario.clock.now = policy.last_promise - 1000
    promised = scenario.promise(0)
    assert promised.status_code == 200
    scenario.clock.now = policy.last_promise
    assert scenario.promise(0).json() == promised.json()  # it was made in time
    assert scenario.reveal(0).status_code == 200
    refused = scenario.promise(1)
    assert refused.status_code == 409 and refused.json()["refusal"]["reason"] == "closed"
    assert scenario.ask("ada").status_code == 200  # a plain account claims nothing


def test_records_carry_the_promised_time_and_the_nonce(scenario: Any) -> None:
    scenario.open()
    promise = Promise.from_json(scenario.promise(0).json())
    scenario.clock.now += 5_000
    public = scenario.reveal(0).json()["public"]
    record = Record.parse(bytes.fromhex(public["body"]))
    promise.verify_kept(record)
    assert record.nonce == scenario.chains["bob"].nonce(0)
    assert public["issued"] > record.time


def test_noise_depends_on_the_nonce(scenario: Any) -> None:
    scenario.open()
    live = scenario.service.open_windows.get("w1")
    record = Promise.from_json(scenario.promise(0).json()).promised
    draw = scenario.service.mechanism.draw_noise
    index = live.indexes["one"]
    assert not np.array_equal(
        draw(live, index, record, bytes(32)), draw(live, index, record, b"\x01" * 32)
    )


def test_an_answered_promise_is_served_after_the_window(scenario: Any) -> None:
    scenario.open()
    scenario.promise(0)
    answered = scenario.reveal(0).json()
    scenario.clock.at(scenario.policy().end)
    assert scenario.reveal(0).json() == answered
    assert scenario.promise(1).json()["refusal"]["reason"] == "closed"


def close(scenario: Any) -> list[Record]:
    """Close the log and return its records."""
    scenario.hand_over()
    return [
        Record.parse(bytes.fromhex(each["body"]))
        for each in _entries(scenario)
        if each["kind"] == "record"
    ]


def _entries(scenario: Any) -> list[dict[str, str]]:
    from ragaudit.prover.window.records import entries

    with scenario.service.store.read() as connection:
        return [{"kind": each.kind, "body": each.body.hex()} for each in entries(connection, "w1")]


def test_a_claimed_promise_is_logged_at_the_close(scenario: Any) -> None:
    scenario.open()
    promise = Promise.from_json(scenario.promise(0).json())
    scenario.service.driver.step("w1")  # hands the registrations over
    claim = {"promise": promise.to_json(), "nonce": scenario.chains["bob"].nonce(0).hex()}
    taken = scenario.verifier.post("/v1/windows/w1/claims", json=claim)
    assert taken.status_code == 200, taken.text
    (record,) = close(scenario)
    promise.verify_kept(record)
    assert record.nonce == scenario.chains["bob"].nonce(0)
    assert [each["kind"] for each in _entries(scenario)][-1] == "close"


def test_a_query_whose_promise_nobody_could_claim(scenario: Any) -> None:
    """Control characters take six bytes each in JSON, and a claim has the query twice."""
    scenario.open()
    answer = scenario.promise(0, query="\x01" * 8000)
    assert answer.status_code == 400 and answer.json()["where"] == "query"
    assert scenario.promise(0, query="a" * 8000).status_code == 200
    assert scenario.ask("ada", query="\x01" * 8000).status_code == 200


def test_every_page_of_claims_is_logged(scenario: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "CLAIMS_PAGE_BYTES", 1)
    scenario.open()
    claims = [
        {"promise": scenario.promise(0).json(), "nonce": scenario.chains["bob"].nonce(0).hex()}
    ]
    assert scenario.reveal(0).status_code == 200
    claims += [
        {"promise": scenario.promise(1).json(), "nonce": scenario.chains["bob"].nonce(1).hex()}
    ]
    scenario.service.driver.step("w1")
    for claim in claims:
        assert scenario.verifier.post("/v1/windows/w1/claims", json=claim).status_code == 200
    assert [each.counter for each in close(scenario)] == [0, 1]


@pytest.mark.parametrize("following", ["", "0" * 64, 5])
def test_pages_of_claims_that_do_not_go_on(
    scenario: Any, monkeypatch: pytest.MonkeyPatch, following: Any
) -> None:
    scenario.open()
    scenario.close()
    page = {"claims": [], "next": following}
    monkeypatch.setattr(ClaimsPage, "to_json", lambda _: page)
    with pytest.raises(VerifierMessageRejected, match="page of claims"):
        scenario.service.driver.step("w1")


def test_an_answered_claim_is_not_logged_again(scenario: Any) -> None:
    scenario.open()
    promised = scenario.promise(0).json()
    scenario.reveal(0)
    scenario.service.driver.step("w1")
    claim = {"promise": promised, "nonce": scenario.chains["bob"].nonce(0).hex()}
    assert scenario.verifier.post("/v1/windows/w1/claims", json=claim).status_code == 200
    assert len(close(scenario)) == 1


@pytest.mark.parametrize("what", ["signature", "origin", "nonce", "format"])
def test_claims_that_are_not_ours_are_dropped(scenario: Any, what: str) -> None:
    scenario.open()
    promised = scenario.promise(0).json()
    nonce = scenario.chains["bob"].nonce(0).hex()
    if what == "signature":
        promised["signature"] = "00" * 64
    elif what == "origin":
        promised["origin"] = "provider.example/ragaudit/other"
    elif what == "nonce":
        nonce = "00" * 32
    else:
        promised["format"] = "other"
    scenario.close()
    live = scenario.service.open_windows.get("w1")
    before = live.log.entries.head()
    closing = scenario.service.driver._closing
    closing.log_claims(live, [{"promise": promised, "nonce": nonce}, 7])
    assert live.log.entries.head() == before
