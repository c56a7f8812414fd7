"""A window's whole life against the real verifier: PASS, restarts, backups, bad challenges."""

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.errors import Conflict, RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected, sign
from ragaudit.encoding.text import b64_decode
from ragaudit.ledger.errors import ChainRejected, MalformedRecord
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.ledger.messages.countersignature import Activation, Countersignature
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.records import Close
from ragaudit.prover.errors import (
    ChallengeRejected,
    ClocksDiffer,
    VerifierMessageRejected,
    VerifierUnreachable,
)
from ragaudit.prover.settings import VerifierSettings
from ragaudit.prover.store.states import State
from ragaudit.prover.verifier.connection import check_clocks, checked_keys


def ask_something(world: Any) -> None:
    for _ in range(3):
        assert world.ask("ada").status_code == 200
    assert world.ask("cyd", query="tickets").status_code == 200
    for counter in range(2):
        assert world.promise(counter).status_code == 200
        assert world.reveal(counter).status_code == 200
    world.service.driver.checkpoint("w1")


def to_challenge(world: Any) -> None:
    world.clock.at(world.policy().end)
    world.drive(State.CLOSED)
    world.service.driver.step("w1")
    world.clock.at(world.policy().sampling_instant)
    world.drive(State.CHALLENGED)


def to_verdict(world: Any) -> dict[str, Any]:
    """Run to the end and return the verdict's predicate."""
    world.service.driver.step("w1")
    world.clock.at(world.policy().release_time // 1000)
    for _ in range(200):
        if world.state() is State.ARCHIVED:
            break
        world.service.driver.step("w1")
        world.verifier.get("/v1/windows/w1/progress")
    envelope = json.loads(world.service.windows.get("w1").verdict)
    return json.loads(b64_decode(envelope["payload"]))["predicate"]


def test_a_whole_window_passes(make_world: Any, embedder: Any) -> None:
    world = make_world(embedder=lambda _: embedder)
    world.open()
    ask_something(world)
    assert world.service.windows.unfinished() == ["w1"]
    to_challenge(world)
    verdict = to_verdict(world)
    assert verdict["result"] == "PASS", verdict["checks"]
    assert world.state() is State.ARCHIVED and world.service.windows.unfinished() == []
    counts = verdict["counts"]
    assert counts["records"] == 6
    # One registration has a chain; nobody showed the verifier that it is the account's own.
    assert (counts["records_anchored"], counts["anchored_unshown"]) == (0, 1)
    final = world.service.windows.get("w1").final_checkpoint
    policy = world.policy()
    verify_cosigned(final, policy.keys.log, CosignerPolicy((policy.keys.cosigner,), 1))


def test_proofs_are_handed_over_at_the_policys_time_and_not_when_they_are_made(world: Any) -> None:
    world.open()
    ask_something(world)
    to_challenge(world)
    release = world.policy().release_time
    assert release == 1000 * (world.policy().sampling_instant + 60)

    def handed_over() -> int:
        return sum("/challenge/" in path for _, path in world.transport.calls)

    world.service.driver.step("w1")
    world.clock.now = release - 10
    world.service.driver.step("w1")
    assert handed_over() == 0 and world.state() is State.CHALLENGED
    world.clock.now = release
    world.service.driver.step("w1")
    assert handed_over() == 6


def test_it_passes_with_a_restart_at_every_state(world: Any) -> None:
    world.create()
    for state in (State.COMMITTED, State.COUNTERSIGNED):
        world.drive(state)
        world.restart()
    for account, anchored in (("ada", False), ("bob", True), ("cyd", False)):
        world.register(account, anchored=anchored)
    world.restart()
    world.service.driver.checkpoint("w1")
    world.clock.at(world.policy().start)
    for state in (State.ACTIVATED, State.OPEN):
        world.drive(state)
        world.restart()
    ask_something(world)
    world.restart()
    assert world.ask().status_code == 200
    world.service.driver.checkpoint("w1")
    world.clock.at(world.policy().end)
    world.drive(State.CLOSED)
    world.restart()
    world.service.driver.step("w1")
    world.restart()
    world.clock.at(world.policy().sampling_instant)
    world.drive(State.CHALLENGED)
    world.restart()
    verdict = to_verdict(world)
    assert verdict["result"] == "PASS", verdict["checks"]


def test_queries_go_on_while_the_verifier_is_away(world: Any) -> None:
    world.open()
    world.transport.down = True
    assert world.ask().status_code == 200
    with pytest.raises(VerifierUnreachable):
        world.service.driver.checkpoint("w1")
    public = world.ask().json()["public"]
    url = f"/v1/windows/w1/receipts/{public['index']}/proof"
    assert world.api.get(url).status_code == 425
    world.clock.at(world.policy().activation_instants[1])
    with pytest.raises(VerifierUnreachable):
        world.service.driver.step("w1")
    world.transport.down = False
    world.service.driver.checkpoint("w1")
    world.service.driver.step("w1")
    assert world.api.get(url).status_code == 200
    assert len(world.service.windows.activations("w1")) == 2


def test_creating_needs_the_verifier(world: Any) -> None:
    world.transport.down = True
    body = {"window": "w1", "overrides": {}}
    answer = world.api.post("/v1/operator/windows", json=body, headers=world.operator)
    assert answer.status_code == 503
    assert world.service.windows.all() == []


def test_clocks_that_differ_are_refused(world: Any) -> None:
    check_clocks(5_000, 0, 5)
    with pytest.raises(ClocksDiffer, match=r"-5\.1 s"):
        check_clocks(0, 5_100, 5)


def test_a_record_is_never_dated_after_the_end(world: Any) -> None:
    world.open()
    honest = world.service.mechanism.embed

    def slow(query: str) -> Any:
        world.clock.at(world.policy().end)
        return honest(query)

    world.service.mechanism.embed = slow
    assert world.ask().json()["refusal"]["reason"] == "closed"


def test_a_late_window_is_refused_with_a_signed_verdict(world: Any) -> None:
    world.create()
    world.drive(State.COMMITTED)
    world.clock.now += 61_000
    world.drive(State.REFUSED)
    envelope = json.loads(world.service.windows.get("w1").verdict)
    predicate = json.loads(b64_decode(envelope["payload"]))["predicate"]
    assert predicate["result"] == "REFUSED"
    assert world.service.driver.step("w1") is False
    with pytest.raises(Conflict):
        world.create("w1")


def test_the_next_window_names_the_last_ones_checkpoint(world: Any) -> None:
    world.open()
    world.ask()
    to_challenge(world)
    to_verdict(world)
    world.create("w2")
    final = world.service.windows.get("w1").final_checkpoint
    policy = loads(world.service.windows.get("w2").policy)
    assert policy["previous_checkpoint"] == final.decode()
    world.drive(State.COUNTERSIGNED, "w2")  # the verifier holds the same checkpoint
    first, second = (Policy.parse(world.service.windows.get(w).policy) for w in ("w1", "w2"))
    assert first.keys.log.public != second.keys.log.public


def test_the_close_entry_claims_and_counts(world: Any) -> None:
    world.open()
    for account in ("ada", "cyd"):
        world.ask(account, query="the very same words")
    to_challenge(world)
    from ragaudit.prover.window.records import entries

    with world.service.store.read() as connection:
        last = list(entries(connection, "w1"))[-1]
    body = Close.parse(last.body)
    assert (last.kind, body.records, body.coalition_claim) == ("close", 2, 2)


class TestBackups:
    """A database that was restored never answers again in that window."""

    def database(self, world: Any) -> list[Any]:
        return sorted((world.folder / "prover").glob("prover.db*"))

    def test_a_lost_record_is_noticed(self, world: Any) -> None:
        world.open()
        world.ask()
        world.service.stop()
        saved = world.folder / "saved"
        saved.mkdir()
        for file in self.database(world):
            shutil.copy(file, saved)
        world.restart()
        assert world.ask().status_code == 200
        world.service.stop()
        for file in self.database(world):
            file.unlink()
        for file in saved.iterdir():
            shutil.copy(file, world.folder / "prover")
        world.restart()
        refused = world.ask()
        assert refused.status_code == 503
        assert refused.json()["refusal"]["reason"] == "unavailable"
        ready = world.api.get("/readyz")
        assert ready.status_code == 503 and "behind the fence" in ready.json()["detail"]
        assert world.service.driver.step("w1") is False
        world.restart()
        assert world.ask().status_code == 503  # for good

    def test_a_lost_promise_is_noticed(self, world: Any) -> None:
        from ragaudit.prover.store import tables
        from sqlalchemy import delete

        world.open()
        world.promise(0)
        with world.service.store.write() as connection:
            connection.execute(delete(tables.promise))
        world.restart()
        assert world.promise(0).json()["refusal"]["reason"] == "unavailable"

    def test_a_missing_fence_is_noticed(self, world: Any) -> None:
        world.open()
        world.service.stop()
        (world.folder / "prover/fences/w1.fence").unlink()
        world.restart()
        assert world.ask().json()["refusal"]["reason"] == "unavailable"

    def test_a_cosigner_that_is_ahead_is_noticed(self, world: Any) -> None:
        from ragaudit.prover.lifecycle.driver import Checkpointer
        from ragaudit.prover.verifier.client import SizeConflict

        class Ahead:
            def add_checkpoint(self, _request: Any, _read: Any) -> SizeConflict:
                return SizeConflict(999)

        world.open()
        world.ask()
        world.service.driver._checkpointer = Checkpointer(Ahead(), world.service.clock)  # type: ignore[arg-type]
        world.service.driver.checkpoint("w1")
        assert "larger tree" in world.service.windows.get("w1").unusable
        assert world.ask().status_code == 503


class TestVerifierMessages:
    """Nothing that the verifier says is believed unsigned or out of place."""

    def signer(self, world: Any) -> PrivateKey:
        seed = (world.folder / "verifier/secrets/verifier.key").read_text().strip()
        return PrivateKey.from_seed(bytes.fromhex(seed))

    def challenge(self, world: Any) -> dict[str, Any]:
        return loads(world.service.windows.get("w1").challenge)

    def resigned(self, world: Any, value: dict[str, Any]) -> dict[str, Any]:
        unsigned = {name: each for name, each in value.items() if name != "signature"}
        digest = sha256(dumps(unsigned)).digest()
        signature = sign(self.signer(world), "challenge", "w1", digest).hex()
        return {**unsigned, "signature": signature}

    def test_challenges(self, world: Any) -> None:
        world.open()
        ask_something(world)
        to_challenge(world)
        live, good = world.service.open_windows.get("w1"), self.challenge(world)
        worker = world.service.driver._challenges
        assert worker.check(live, Challenge.from_json(good))

        def refused(expected: type[Exception], **changes: object) -> None:
            with pytest.raises(expected):
                worker.check(live, Challenge.from_json(self.resigned(world, {**good, **changes})))

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

    def test_nothing_outside_the_sample_is_opened(self, world: Any) -> None:
        world.open(audit={"mode": "B", "beta": "0.5", "tenants": {"eta": "0.5", "minimum": 1}})
        ask_something(world)
        to_challenge(world)
        live = world.service.open_windows.get("w1")
        opened = []
        honest = live.seed.open
        live.seed.open = lambda slot, counter: (
            opened.append((slot, counter)) or honest(slot, counter)  # type: ignore[func-returns-value]
        )
        verdict = to_verdict(world)
        sampled = {each for s in self.challenge(world)["strata"] for each in s["sample"]}
        assert verdict["result"] == "PASS" and len(opened) == len(sampled) < 6

    def test_countersignatures(self, world: Any) -> None:
        world.open()
        window, policy = world.service.windows.get("w1"), world.policy()
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

    def test_activations(self, world: Any) -> None:
        world.open()
        live = world.service.open_windows.get("w1")
        good = loads(world.service.windows.activations("w1")[1])
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

    def test_pinned_keys(self, world: Any) -> None:
        shown = world.service.verifier.keys()
        assert checked_keys(shown, VerifierSettings()) is shown
        good = VerifierSettings(cosigner_key=str(shown.cosigner))
        assert checked_keys(shown, good) is shown
        for pins in ({"verifier_key": "00" * 32}, {"verdict_key": "00" * 32}):
            with pytest.raises(VerifierMessageRejected):
                checked_keys(shown, VerifierSettings(**pins))  # type: ignore[arg-type]

    def test_an_arbiter_that_nobody_named_is_refused(self, world: Any) -> None:
        """Whoever answers in the verifier's place could put one of its own into the policy."""
        shown = replace(world.service.verifier.keys(), arbiter=PrivateKey.generate().public)
        with pytest.raises(VerifierMessageRejected, match="arbiter_key"):
            checked_keys(shown, VerifierSettings())
        assert shown.arbiter is not None
        named = VerifierSettings(arbiter_key=shown.arbiter.raw.hex())
        assert checked_keys(shown, named) is shown
        assert checked_keys(shown, VerifierSettings(allow_unpinned=True)) is shown
