"""Anchored accounts: promises, nonces, retries, claims; all ten checks of a receipt."""

from typing import Any

import numpy as np
import pytest
from ragaudit import core
from ragaudit.circuits.sketch import sketch
from ragaudit.embedders.base import embed_quantised
from ragaudit.ledger.messages.promises import ClaimsPage, Promise
from ragaudit.ledger.messages.receipt_check import AccountView, WindowView, check_receipt_file
from ragaudit.ledger.messages.records import Opening, Record
from ragaudit.prover.errors import VerifierMessageRejected
from ragaudit.prover.store.states import State
from ragaudit.prover.window.records import note_nonce
from ragaudit.verifier.service import intake


class Operations:
    """The group operations of the receipt check, by the compiled core."""

    def commit_row(self, row: Any, blinding: bytes) -> bytes:
        blindings = np.frombuffer(blinding, dtype=np.uint8).reshape(1, 32)
        return core.commit_rows(np.array([row], dtype=np.int8), blindings)

    def commit_selection(self, positions: Any, blinding: bytes) -> bytes:
        return core.commit_selection(positions, blinding)

    def sketch(self, query: Any, seed: bytes, bits: int) -> bytes:
        return sketch(np.array(query, dtype=np.int16), seed, bits)


def test_all_ten_checks_of_an_anchored_receipt(make_world: Any, embedder: Any) -> None:
    world = make_world(embedder=lambda _: embedder)
    world.open()
    promised = world.promise(0, query="a broken product")
    assert promised.status_code == 200, promised.text
    promise = Promise.from_json(promised.json())
    promise.verify(world.policy().keys.provider)
    value = world.reveal(0).json()
    world.service.driver.checkpoint("w1")
    public = value["public"]
    public["proof"] = world.api.get(f"/v1/windows/w1/receipts/{public['index']}/proof").text
    window = world.api.get("/v1/windows/w1").json()
    account = world.api.get("/v1/windows/w1/account", headers=world.headers("bob")).json()
    assert value["request"] == {"counter": 0, "filter": "", "query": "a broken product", "top_k": 2}
    steps = check_receipt_file(
        value,
        WindowView(
            world.policy(),
            Opening.parse(bytes.fromhex(window["opening"]["body"])),
            [each["covered_size"] for each in window["activations"]],
        ),
        Operations(),
        anchor=world.chains["bob"].anchor,
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


def test_retries_are_the_same_bit_for_bit(world: Any) -> None:
    world.open()
    promised = world.promise(0).json()
    assert world.promise(0).json() == promised
    answered = world.reveal(0)
    assert answered.status_code == 200
    size = world.service.open_windows.get("w1").log.entries.head().size
    assert world.reveal(0).json() == answered.json()
    world.restart()
    assert world.reveal(0).json() == answered.json()
    assert world.service.open_windows.get("w1").log.entries.head().size == size


def test_one_counter_is_never_promised_twice(world: Any) -> None:
    world.open()
    promised = world.promise(0, query="bread").json()
    other = world.promise(0, query="trains")
    assert other.status_code == 409
    assert other.json()["promise"] == promised
    # True to the second: until then the promise stands, from then on there is another.
    policy, made = world.policy(), Promise.from_json(promised).record.time
    end = made + policy.promise_life + 2000 * policy.clock_skew_seconds
    instant = world.clock.now + 1000 * int(other.headers["Retry-After"])
    assert end < instant <= end + 1000
    world.restart()
    assert world.promise(0, query="trains").status_code == 409
    assert world.promise(0, query="bread").json() == promised


def test_another_promise_can_be_had_when_the_refusal_says_so(world: Any) -> None:
    world.open()
    first = world.promise(0, query="bread").json()
    waiting = int(world.promise(0, query="trains").headers["Retry-After"])
    world.clock.now += 1000 * (waiting - 1)
    assert world.promise(0, query="bread").json() == first
    world.clock.now += 1000
    assert world.promise(0, query="trains").json()["query"] == "trains"


def test_counters_and_nonces_that_are_wrong(world: Any) -> None:
    world.open()
    assert world.promise(1).status_code == 409
    assert world.reveal(0).status_code == 409  # nothing promised
    world.promise(0)
    assert world.reveal(0, nonce=bytes(32)).status_code == 422
    assert world.reveal(0, nonce=world.chains["bob"].nonce(1)).status_code == 422
    assert world.reveal(0).status_code == 200
    assert world.promise(0).status_code == 409
    assert world.promise(1).status_code == 200


def test_an_old_promise_is_not_answered(world: Any) -> None:
    world.open()
    world.promise(0)
    world.clock.now += 301_000
    refused = world.reveal(0)
    assert refused.status_code == 409 and "too old" in refused.json()["detail"]


def expire(world: Any, promised: dict[str, Any]) -> None:
    """Go to where nobody takes a claim of the promise any more, by any clock within the skew."""
    made = Promise.from_json(promised).record.time
    policy = world.policy()
    world.clock.now = made + policy.promise_life + 2000 * policy.clock_skew_seconds + 1


def test_an_expired_promise_that_nobody_claimed_is_superseded(world: Any) -> None:
    world.open()
    first = world.promise(0, query="bread").json()
    world.clock.now += 301_000  # too old to be answered, and the verifier may still take a claim
    assert world.promise(0, query="trains").status_code == 409
    expire(world, first)
    second = world.promise(0, query="trains").json()
    assert second["query"] == "trains"
    assert Promise.from_json(second).record.time > Promise.from_json(first).record.time
    world.restart()
    assert world.promise(0, query="trains").json() == second
    assert world.reveal(0).status_code == 200
    assert world.promise(1).status_code == 200


def test_a_promise_whose_nonce_was_seen_is_never_superseded(world: Any) -> None:
    """The provider could evaluate the noise: another promise would be another draw."""
    world.open()
    first = world.promise(0).json()
    live = world.service.open_windows.get("w1")
    with live.committing(world.service.store) as transaction:
        note_nonce(transaction.connection, "w1", "bob", 0, world.chains["bob"].nonce(0))
    expire(world, first)
    refused = world.promise(0, query="trains")
    assert refused.status_code == 409 and "nonce was revealed" in refused.json()["detail"]


def test_a_claimed_promise_is_never_superseded(world: Any) -> None:
    world.open()
    first = world.promise(0).json()
    world.service.driver.step("w1")  # hands the registrations over
    claim = {"promise": first, "nonce": world.chains["bob"].nonce(0).hex()}
    assert world.verifier.post("/v1/windows/w1/claims", json=claim).status_code == 200
    expire(world, first)
    assert world.promise(0, query="trains").status_code == 409
    (record,) = close(world)
    Promise.from_json(first).verify_kept(record)


def test_without_the_verifier_nothing_is_superseded(world: Any) -> None:
    world.open()
    first = world.promise(0).json()
    expire(world, first)
    world.transport.down = True
    assert world.promise(0).status_code == 503
    world.transport.down = False
    assert world.promise(0).status_code == 200


def test_no_promise_is_made_when_it_could_not_be_claimed(world: Any) -> None:
    world.open()
    policy = world.policy()
    assert policy.last_promise == 1000 * (policy.end - 60)
    world.clock.now = policy.last_promise - 1000
    promised = world.promise(0)
    assert promised.status_code == 200
    world.clock.now = policy.last_promise
    assert world.promise(0).json() == promised.json()  # it was made in time
    assert world.reveal(0).status_code == 200
    refused = world.promise(1)
    assert refused.status_code == 409 and refused.json()["refusal"]["reason"] == "closed"
    assert world.ask("ada").status_code == 200  # a plain account claims nothing


def test_records_carry_the_promised_time_and_the_nonce(world: Any) -> None:
    world.open()
    promise = Promise.from_json(world.promise(0).json())
    world.clock.now += 5_000
    public = world.reveal(0).json()["public"]
    record = Record.parse(bytes.fromhex(public["body"]))
    promise.verify_kept(record)
    assert record.nonce == world.chains["bob"].nonce(0)
    assert public["issued"] > record.time


def test_noise_depends_on_the_nonce(world: Any) -> None:
    world.open()
    live = world.service.open_windows.get("w1")
    record = Promise.from_json(world.promise(0).json()).record
    draw = world.service.mechanism.draw_noise
    index = live.indexes["one"]
    assert not np.array_equal(
        draw(live, index, record, bytes(32)), draw(live, index, record, b"\x01" * 32)
    )


def test_an_answered_promise_is_served_after_the_window(world: Any) -> None:
    world.open()
    world.promise(0)
    answered = world.reveal(0).json()
    world.clock.at(world.policy().end)
    assert world.reveal(0).json() == answered
    assert world.promise(1).json()["refusal"]["reason"] == "closed"


def close(world: Any) -> list[Record]:
    """Close the log and return its records."""
    world.clock.at(world.policy().end)
    world.drive(State.CLOSED)
    world.service.driver.step("w1")
    return [
        Record.parse(bytes.fromhex(each["body"]))
        for each in _entries(world)
        if each["kind"] == "record"
    ]


def _entries(world: Any) -> list[dict[str, str]]:
    from ragaudit.prover.window.records import entries

    with world.service.store.read() as connection:
        return [{"kind": each.kind, "body": each.body.hex()} for each in entries(connection, "w1")]


def test_a_claimed_promise_is_logged_at_the_close(world: Any) -> None:
    world.open()
    promise = Promise.from_json(world.promise(0).json())
    world.service.driver.step("w1")  # hands the registrations over
    claim = {"promise": promise.to_json(), "nonce": world.chains["bob"].nonce(0).hex()}
    taken = world.verifier.post("/v1/windows/w1/claims", json=claim)
    assert taken.status_code == 200, taken.text
    (record,) = close(world)
    promise.verify_kept(record)
    assert record.nonce == world.chains["bob"].nonce(0)
    assert [each["kind"] for each in _entries(world)][-1] == "close"


def test_a_query_whose_promise_nobody_could_claim(world: Any) -> None:
    """Control characters take six bytes each in JSON, and a claim has the query twice."""
    world.open()
    answer = world.promise(0, query="\x01" * 8000)
    assert answer.status_code == 400 and answer.json()["where"] == "query"
    assert world.promise(0, query="a" * 8000).status_code == 200
    assert world.ask("ada", query="\x01" * 8000).status_code == 200


def test_every_page_of_claims_is_logged(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "CLAIMS_PAGE_BYTES", 1)
    world.open()
    claims = [{"promise": world.promise(0).json(), "nonce": world.chains["bob"].nonce(0).hex()}]
    assert world.reveal(0).status_code == 200
    claims += [{"promise": world.promise(1).json(), "nonce": world.chains["bob"].nonce(1).hex()}]
    world.service.driver.step("w1")
    for claim in claims:
        assert world.verifier.post("/v1/windows/w1/claims", json=claim).status_code == 200
    assert [each.counter for each in close(world)] == [0, 1]


@pytest.mark.parametrize("following", ["", "0" * 64, 5])
def test_pages_of_claims_that_do_not_go_on(
    world: Any, monkeypatch: pytest.MonkeyPatch, following: Any
) -> None:
    world.open()
    world.clock.at(world.policy().end)
    world.drive(State.CLOSED)
    page = {"claims": [], "next": following}
    monkeypatch.setattr(ClaimsPage, "to_json", lambda _: page)
    with pytest.raises(VerifierMessageRejected, match="page of claims"):
        world.service.driver.step("w1")


def test_an_answered_claim_is_not_logged_again(world: Any) -> None:
    world.open()
    promised = world.promise(0).json()
    world.reveal(0)
    world.service.driver.step("w1")
    claim = {"promise": promised, "nonce": world.chains["bob"].nonce(0).hex()}
    assert world.verifier.post("/v1/windows/w1/claims", json=claim).status_code == 200
    assert len(close(world)) == 1


@pytest.mark.parametrize("what", ["signature", "origin", "nonce", "format"])
def test_claims_that_are_not_ours_are_dropped(world: Any, what: str) -> None:
    world.open()
    promised = world.promise(0).json()
    nonce = world.chains["bob"].nonce(0).hex()
    if what == "signature":
        promised["signature"] = "00" * 64
    elif what == "origin":
        promised["origin"] = "provider.example/ragaudit/other"
    elif what == "nonce":
        nonce = "00" * 32
    else:
        promised["format"] = "other"
    world.clock.at(world.policy().end)
    world.drive(State.CLOSED)
    live = world.service.open_windows.get("w1")
    before = live.log.entries.head()
    closing = world.service.driver._closing
    closing.log_claims(live, [{"promise": promised, "nonce": nonce}, 7])
    assert live.log.entries.head() == before
