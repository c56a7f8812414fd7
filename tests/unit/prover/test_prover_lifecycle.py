"""A window's whole life against the real verifier: PASS, restarts, backups, bad challenges."""

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.errors import Conflict, RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected, sign
from ragaudit.encoding.text import b64_decode
from ragaudit.ledger.errors import ChainRejected, MalformedRecord
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.messages.challenge import Activation, Challenge, Countersignature
from ragaudit.ledger.messages.entries import Close
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.errors import (
    ChallengeRejected,
    ClocksDiffer,
    VerifierMessageRejected,
    VerifierUnreachable,
)
from ragaudit.prover.settings import VerifierSettings
from ragaudit.prover.store.states import State
from ragaudit.prover.verifier.connection import check_clocks, checked_keys
from restoring import BackUp

pytestmark = ON_EACH_ENGINE


def ask_something(scenario: Any) -> None:
    for _ in range(3):
        assert scenario.ask("ada").status_code == 200
    assert scenario.ask("cyd", query="tickets").status_code == 200
    for counter in range(2):
        assert scenario.promise(counter).status_code == 200
        assert scenario.reveal(counter).status_code == 200
    scenario.service.driver.checkpoint("w1")


def to_challenge(scenario: Any) -> None:
    scenario.clock.at(scenario.policy().end)
    scenario.drive(State.CLOSED)
    scenario.service.driver.step("w1")
    scenario.clock.at(scenario.policy().sampling_instant)
    scenario.drive(State.CHALLENGED)


def to_verdict(scenario: Any) -> dict[str, Any]:
    """Run to the end and return the verdict's predicate."""
    scenario.service.driver.step("w1")
    scenario.clock.at(scenario.policy().release_time // 1000)
    for _ in range(200):
        if scenario.state() is State.ARCHIVED:
            break
        scenario.service.driver.step("w1")
        scenario.verifier.get("/v1/windows/w1/progress")
    envelope = json.loads(scenario.service.windows.get("w1").verdict)
    return json.loads(b64_decode(envelope["payload"]))["predicate"]


def test_a_whole_window_passes(make_scenario: Any, embedder: Any) -> None:
    scenario = make_scenario(embedder=lambda _: embedder)
    scenario.open()
    ask_something(scenario)
    assert scenario.service.windows.unfinished() == ["w1"]
    to_challenge(scenario)
    verdict = to_verdict(scenario)
    assert verdict["result"] == "PASS", verdict["checks"]
    assert scenario.state() is State.ARCHIVED and scenario.service.windows.unfinished() == []
    counts = verdict["counts"]
    assert counts["records"] == 6
    # One registration has a chain; nobody showed the verifier that it is the account's own.
    assert (counts["records_anchored"], counts["anchored_unshown"]) == (0, 1)
    final = scenario.service.windows.get("w1").final_checkpoint
    policy = scenario.policy()
    verify_cosigned(final, policy.keys.log, CosignerPolicy((policy.keys.cosigner,), 1))


def test_proofs_are_handed_over_at_the_policys_time_and_not_when_they_are_made(
    scenario: Any,
) -> None:
    scenario.open()
    ask_something(scenario)
    to_challenge(scenario)
    release = scenario.policy().release_time
    assert release == 1000 * (scenario.policy().sampling_instant + 60)

    def handed_over() -> int:
        return sum("/challenge/" in path for _, path in scenario.transport.calls)

    scenario.service.driver.step("w1")
    scenario.clock.now = release - 10
    scenario.service.driver.step("w1")
    assert handed_over() == 0 and scenario.state() is State.CHALLENGED
    scenario.clock.now = release
    scenario.service.driver.step("w1")
    assert handed_over() == 6


def test_it_passes_with_a_restart_at_every_state(scenario: Any) -> None:
    scenario.create()
    for state in (State.COMMITTED, State.COUNTERSIGNED):
        scenario.drive(state)
        scenario.restart()
    for account, anchored in (("ada", False), ("bob", True), ("cyd", False)):
        scenario.register(account, anchored=anchored)
    scenario.restart()
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    for state in (State.ACTIVATED, State.OPEN):
        scenario.drive(state)
        scenario.restart()
    ask_something(scenario)
    scenario.restart()
    assert scenario.ask().status_code == 200
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().end)
    scenario.drive(State.CLOSED)
    scenario.restart()
    scenario.service.driver.step("w1")
    scenario.restart()
    scenario.clock.at(scenario.policy().sampling_instant)
    scenario.drive(State.CHALLENGED)
    scenario.restart()
    verdict = to_verdict(scenario)
    assert verdict["result"] == "PASS", verdict["checks"]


def test_queries_go_on_while_the_verifier_is_away(scenario: Any) -> None:
    scenario.open()
    scenario.transport.down = True
    assert scenario.ask().status_code == 200
    with pytest.raises(VerifierUnreachable):
        scenario.service.driver.checkpoint("w1")
    public = scenario.ask().json()["public"]
    url = f"/v1/windows/w1/receipts/{public['index']}/proof"
    assert scenario.api.get(url).status_code == 425
    scenario.clock.at(scenario.policy().activation_instants[1])
    with pytest.raises(VerifierUnreachable):
        scenario.service.driver.step("w1")
    scenario.transport.down = False
    scenario.service.driver.checkpoint("w1")
    scenario.service.driver.step("w1")
    assert scenario.api.get(url).status_code == 200
    assert len(scenario.service.windows.activations("w1")) == 2


def test_creating_needs_the_verifier(scenario: Any) -> None:
    scenario.transport.down = True
    body = {"window": "w1", "overrides": {}}
    answer = scenario.api.post("/v1/operator/windows", json=body, headers=scenario.operator)
    assert answer.status_code == 503
    assert scenario.service.windows.all() == []


def test_clocks_that_differ_are_refused(scenario: Any) -> None:
    check_clocks(5_000, 0, 5)
    with pytest.raises(ClocksDiffer, match=r"-5\.1 s"):
        check_clocks(0, 5_100, 5)


def test_a_record_is_never_dated_after_the_end(scenario: Any) -> None:
    scenario.open()
    honest = scenario.service.mechanism.embed

    def slow(query: str) -> Any:
        scenario.clock.at(scenario.policy().end)
        return honest(query)

    scenario.service.mechanism.embed = slow
    assert scenario.ask().json()["refusal"]["reason"] == "closed"


def test_a_late_window_is_refused_with_a_signed_verdict(scenario: Any) -> None:
    scenario.create()
    scenario.drive(State.COMMITTED)
    scenario.clock.now += 61_000
    scenario.drive(State.REFUSED)
    envelope = json.loads(scenario.service.windows.get("w1").verdict)
    predicate = json.loads(b64_decode(envelope["payload"]))["predicate"]
    assert predicate["result"] == "REFUSED"
    assert scenario.service.driver.step("w1") is False
    with pytest.raises(Conflict):
        scenario.create("w1")


def test_the_next_window_names_the_last_ones_checkpoint(scenario: Any) -> None:
    scenario.open()
    scenario.ask()
    to_challenge(scenario)
    to_verdict(scenario)
    scenario.create("w2")
    final = scenario.service.windows.get("w1").final_checkpoint
    policy = loads(scenario.service.windows.get("w2").policy)
    assert policy["previous_checkpoint"] == final.decode()
    scenario.drive(State.COUNTERSIGNED, "w2")  # the verifier holds the same checkpoint
    first, second = (Policy.parse(scenario.service.windows.get(w).policy) for w in ("w1", "w2"))
    assert first.keys.log.public != second.keys.log.public


def test_the_close_entry_claims_and_counts(scenario: Any) -> None:
    scenario.open()
    for account in ("ada", "cyd"):
        scenario.ask(account, query="the very same words")
    to_challenge(scenario)
    from ragaudit.prover.window.records import entries

    with scenario.service.store.read() as connection:
        last = list(entries(connection, "w1"))[-1]
    body = Close.parse(last.body)
    assert (last.kind, body.records, body.coalition_claim) == ("close", 2, 2)


class TestBackups:
    """A database that was restored never answers again in that window."""

    def test_a_lost_record_is_noticed(self, scenario: Any) -> None:
        scenario.open()
        scenario.ask()
        scenario.service.stop()
        saved = BackUp(scenario.settings.store.url)
        scenario.restart()
        assert scenario.ask().status_code == 200
        scenario.service.stop()
        saved.restore()
        scenario.restart()
        refused = scenario.ask()
        assert refused.status_code == 503
        assert refused.json()["refusal"]["reason"] == "unavailable"
        ready = scenario.api.get("/readyz")
        assert ready.status_code == 503 and "behind the fence" in ready.json()["detail"]
        assert scenario.service.driver.step("w1") is False
        scenario.restart()
        assert scenario.ask().status_code == 503  # for good

    def test_a_lost_promise_is_noticed(self, scenario: Any) -> None:
        from ragaudit.prover.store import tables
        from sqlalchemy import delete

        scenario.open()
        scenario.promise(0)
        with scenario.service.store.write() as connection:
            connection.execute(delete(tables.promise))
        scenario.restart()
        assert scenario.promise(0).json()["refusal"]["reason"] == "unavailable"

    def test_a_missing_fence_is_noticed(self, scenario: Any) -> None:
        scenario.open()
        scenario.service.stop()
        (scenario.folder / "prover/fences/w1.fence").unlink()
        scenario.restart()
        assert scenario.ask().json()["refusal"]["reason"] == "unavailable"

    def test_a_cosigner_that_is_ahead_is_noticed(self, scenario: Any) -> None:
        from ragaudit.prover.lifecycle.driver import Checkpointer
        from ragaudit.prover.verifier.client import SizeConflict

        class Ahead:
            def add_checkpoint(self, _request: Any, _read: Any) -> SizeConflict:
                return SizeConflict(999)

        scenario.open_anew()
        scenario.ask()
        scenario.service.driver._checkpointer = Checkpointer(Ahead(), scenario.service.clock)  # type: ignore[arg-type]
        scenario.service.driver.checkpoint("w1")
        assert "larger tree" in scenario.service.windows.get("w1").unusable
        assert scenario.ask().status_code == 503


class TestVerifierMessages:
    """Nothing that the verifier says is believed unsigned or out of place."""

    def signer(self, scenario: Any) -> PrivateKey:
        seed = (scenario.folder / "verifier/secrets/verifier.key").read_text().strip()
        return PrivateKey.from_seed(bytes.fromhex(seed))

    def challenge(self, scenario: Any) -> dict[str, Any]:
        return loads(scenario.service.windows.get("w1").challenge)

    def resigned(self, scenario: Any, value: dict[str, Any]) -> dict[str, Any]:
        unsigned = {name: each for name, each in value.items() if name != "signature"}
        digest = sha256(dumps(unsigned)).digest()
        signature = sign(self.signer(scenario), "challenge", "w1", digest).hex()
        return {**unsigned, "signature": signature}

    def test_challenges(self, scenario: Any) -> None:
        scenario.open()
        ask_something(scenario)
        to_challenge(scenario)
        live, good = scenario.service.open_windows.get("w1"), self.challenge(scenario)
        worker = scenario.service.driver._challenges
        assert worker.check(live, Challenge.from_json(good))

        def refused(expected: type[Exception], **changes: object) -> None:
            with pytest.raises(expected):
                worker.check(
                    live, Challenge.from_json(self.resigned(scenario, {**good, **changes}))
                )

        refused(ChallengeRejected, final_root="00" * 32)
        refused(ChallengeRejected, final_size=good["final_size"] - 1)
        refused(ChainRejected, preimage="00" * 32)
        refused(RejectedError, window="w2")
        refused(SignatureRejected, receipts_list={**good["receipts_list"], "count": 9})
        refused(ChallengeRejected, strata=list(reversed(good["strata"])))
        refused(ChallengeRejected, strata=good["strata"][:1])
        tenant = {**good["strata"][0], "sample": good["strata"][0]["sample"][:-1]}
        refused(ChallengeRejected, strata=[tenant, *good["strata"][1:]])
        outside = {"id": "account:" + "ab" * 32, "population": [0], "sample": [0]}
        refused(ChallengeRejected, strata=[*good["strata"], outside])
        refused(MalformedRecord, disputed=[])
        # Everybody's records, as if each had been submitted: the receipts list counts fewer.
        everything = sorted(good["strata"][0]["sample"])
        claimed = {"id": "account:" + "ab" * 32, "population": everything, "sample": everything}
        refused(ChallengeRejected, strata=[good["strata"][0], claimed])
        refused(MalformedRecord, surprise=1)
        with pytest.raises(SignatureRejected):
            worker.check(live, Challenge.from_json({**good, "deadline": good["deadline"] + 1}))

    def test_nothing_outside_the_sample_is_opened(self, scenario: Any) -> None:
        scenario.open(audit={"mode": "B", "beta": "0.5", "tenants": {"eta": "0.5", "minimum": 1}})
        ask_something(scenario)
        to_challenge(scenario)
        live = scenario.service.open_windows.get("w1")
        opened = []
        honest = live.seed.open
        live.seed.open = lambda slot, counter: (
            opened.append((slot, counter)) or honest(slot, counter)  # type: ignore[func-returns-value]
        )
        verdict = to_verdict(scenario)
        sampled = {each for s in self.challenge(scenario)["strata"] for each in s["sample"]}
        assert verdict["result"] == "PASS" and len(opened) == len(sampled) < 6

    def test_countersignatures(self, scenario: Any) -> None:
        scenario.open()
        window, policy = scenario.service.windows.get("w1"), scenario.policy()
        good = loads(window.countersignature)
        opening = {"opening_salt": window.opening_salt, "opening_body": window.opening_body}
        Countersignature.from_json(good).authenticate(policy, **opening)
        for changed, expected in (
            ({"time": good["time"] + 1}, "does not verify"),
            ({"activation_anchor": "00" * 32}, "does not verify"),
            ({"policy_digest": "00" * 32}, "another policy"),
            ({"window": "w2"}, "another window"),
        ):
            with pytest.raises(RejectedError, match=expected):
                Countersignature.from_json({**good, **changed}).authenticate(policy, **opening)
        with pytest.raises(RejectedError, match="another opening"):
            Countersignature.from_json(good).authenticate(
                policy, opening_salt=bytes(32), opening_body=window.opening_body
            )
        with pytest.raises(MalformedRecord):
            Countersignature.from_json({})

    def test_activations(self, scenario: Any) -> None:
        scenario.open()
        live = scenario.service.open_windows.get("w1")
        good = loads(scenario.service.windows.activations("w1")[1])
        activation = Activation.from_json(good)
        activation.authenticate(live.policy, anchor=live.anchor, number=1)
        assert activation.covered_size == 4
        with pytest.raises(RejectedError, match="another activation"):
            activation.authenticate(live.policy, anchor=live.anchor, number=2)
        with pytest.raises(SignatureRejected):
            Activation.from_json({**good, "covered_size": 9}).authenticate(
                live.policy, anchor=live.anchor, number=1
            )
        with pytest.raises(ChainRejected):
            activation.authenticate(live.policy, anchor=bytes(32), number=1)

    def test_pinned_keys(self, scenario: Any) -> None:
        shown = scenario.service.verifier.keys()
        assert checked_keys(shown, VerifierSettings()) is shown
        good = VerifierSettings(cosigner_key=str(shown.cosigner))
        assert checked_keys(shown, good) is shown
        for pins in ({"verifier_key": "00" * 32}, {"verdict_key": "00" * 32}):
            with pytest.raises(VerifierMessageRejected):
                checked_keys(shown, VerifierSettings(**pins))  # type: ignore[arg-type]

    def test_an_arbiter_that_nobody_named_is_refused(self, scenario: Any) -> None:
        """Whoever answers in the verifier's place could put one of its own into the policy."""
        shown = replace(scenario.service.verifier.keys(), arbiter=PrivateKey.generate().public)
        with pytest.raises(VerifierMessageRejected, match="arbiter_key"):
            checked_keys(shown, VerifierSettings())
        assert shown.arbiter is not None
        named = VerifierSettings(arbiter_key=shown.arbiter.raw.hex())
        assert checked_keys(shown, named) is shown
        assert checked_keys(shown, VerifierSettings(allow_unpinned=True)) is shown
