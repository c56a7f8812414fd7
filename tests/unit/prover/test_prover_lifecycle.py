"""A window's whole life against the real verifier: PASS, restarts, backups, bad challenges."""

import io
import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import httpx
import pytest
from databases import ON_EACH_ENGINE
from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.errors import Conflict, RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected, sign
from ragaudit.encoding.text import b64_decode
from ragaudit.ledger.errors import ChainRejected, MalformedRecord
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.messages.challenge import Activation, Challenge, Countersignature
from ragaudit.ledger.messages.entries import Close, Record
from ragaudit.ledger.messages.handover import read_handover, write_handover
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.promises import Promise
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.answering.query import Admitted, Selected
from ragaudit.prover.errors import (
    ChallengeRejected,
    ClocksDiffer,
    VerifierMessageRejected,
    VerifierRefused,
    VerifierUnreachable,
)
from ragaudit.prover.lifecycle import closing
from ragaudit.prover.settings import VerifierSettings
from ragaudit.prover.store.states import State
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.verifier.connection import check_clocks, checked_keys
from ragaudit.prover.window.log_transaction import Standings, WindowFence
from ragaudit.prover.window.records import entries
from ragaudit.verifier.service import cosigner, handover
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


def test_a_whole_window_passes(make_scenario: Any, embedder: Any) -> None:
    scenario = make_scenario(embedder=lambda _: embedder)
    scenario.open()
    ask_something(scenario)
    assert scenario.service.windows.unfinished() == ["w1"]
    scenario.hand_over()
    scenario.draw()
    verdict = scenario.decide()
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
    scenario.hand_over()
    scenario.draw()
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
    scenario.close()
    scenario.restart()
    scenario.service.driver.step("w1")
    scenario.restart()
    scenario.draw()
    scenario.restart()
    verdict = scenario.decide()
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
    scenario.hand_over()
    scenario.draw()
    scenario.decide()
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
    scenario.hand_over()
    scenario.draw()
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
        scenario.hand_over()
        scenario.draw()
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
        scenario.hand_over()
        scenario.draw()
        live = scenario.service.open_windows.get("w1")
        opened = []
        honest = live.seed.open
        live.seed.open = lambda slot, counter: (
            opened.append((slot, counter)) or honest(slot, counter)  # type: ignore[func-returns-value]
        )
        verdict = scenario.decide()
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


# The handover of a log in parts: broken off, gone on with, and begun again.

PART = 2


@pytest.fixture
def ended(scenario: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A window of several parts that is over, and not handed over."""
    for module in (closing, handover):
        monkeypatch.setattr(module, "PART_ENTRIES", PART)
    scenario.open()
    for _ in range(4):
        assert scenario.ask("ada").status_code == 200
    scenario.service.driver.checkpoint("w1")
    scenario.close()
    return scenario


def hand_over(scenario: Any) -> None:
    scenario.service.driver.step("w1")
    assert scenario.service.windows.get("w1").handed_over


def test_a_handover_goes_on_where_it_was_broken_off(
    ended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, send = [], VerifierClient.put_part

    def put_part(client: VerifierClient, window: str, number: int, data: bytes) -> None:
        if number == 2 and 2 not in sent:
            sent.append(2)
            raise VerifierUnreachable("broken off", where="records")
        sent.append(number)
        send(client, window, number, data)

    monkeypatch.setattr(VerifierClient, "put_part", put_part)
    with pytest.raises(VerifierUnreachable, match="broken off"):
        hand_over(ended)
    # Another process, of which nothing is known but what database and verifier hold.
    ended.restart()
    hand_over(ended)
    with ended.service.store.read() as connection:
        logged = len(list(entries(connection, "w1")))
    last = (logged - 1) // PART
    assert last > 2
    assert sent == [0, 1, 2, *range(2, last + 1)]


def test_what_the_verifier_holds_of_another_log_is_begun_again(ended: Any) -> None:
    service = ended.service
    live = service.open_windows.get("w1")
    with service.store.read() as connection:
        first = list(entries(connection, "w1", 0, PART))
    other = [replace(first[0], salt=bytes(32)), *first[1:]]
    service.driver._verifier.put_part("w1", 0, write_handover(other))
    with pytest.raises(VerifierRefused, match="another digest"):
        hand_over(ended)
    hand_over(ended)
    closer = service.driver._closing
    parts = b"".join(closer.handover(live, number) for number in range(9))
    read = list(read_handover(io.BytesIO(parts)))
    assert [entry.index for entry in read] == list(range(len(read)))
    assert all((entry.kind == "record") == bool(entry.sketch) for entry in read)


# Each fault beside the check that stops it, and what comes of it where that check is removed.

SKEW = 5


class Drawing(Mechanism):
    """Remembers the noise of every record; may be slow between drawing it and the log."""

    def __init__(self, embedder: Any) -> None:
        super().__init__(embedder)
        self.drawn: list[list[int]] = []
        self.meanwhile: Any = lambda: None

    def draw_noise(self, *arguments: Any) -> Any:
        noise = super().draw_noise(*arguments)
        self.drawn.append(noise.tolist())
        self.meanwhile()
        return noise


def record_of(answer: Any) -> Record:
    assert answer.status_code == 200, answer.text
    return Record.parse(bytes.fromhex(answer.json()["public"]["body"]))


# --- the fence's comparison in every transaction that commits ---


@pytest.mark.parametrize("checked", [True, False])
def test_lost_records_and_the_comparison_of_the_head(
    make_scenario: Any, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    if not checked:
        monkeypatch.setattr(
            WindowFence, "check_head", lambda self, connection: self.entries.lock(connection)
        )
        monkeypatch.setattr(WindowFence, "check_account", lambda *_: None)
        # Nor may memory know better.
        monkeypatch.setattr(Standings, "last", lambda *_: None)
    scenario = make_scenario(mechanism=Drawing)
    scenario.open()
    scenario.ask()
    database = BackUp(scenario.settings.store.url)
    before = record_of(scenario.ask(query="trains"))
    database.restore()
    again = scenario.ask(query="violin")
    if checked:
        assert again.status_code == 503 and "behind the fence" in again.json()["detail"]
        return
    # Another question under the same counter, with the same noise: it can be subtracted.
    assert record_of(again).counter == before.counter
    drawn = scenario.service.mechanism.drawn
    assert drawn[-1] == drawn[-2] != drawn[0]


@pytest.mark.parametrize("checked", [True, False])
def test_a_lost_promise_and_the_comparison_of_the_counter(
    scenario: Any, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    """The log did not grow with the promise, so that its head says nothing."""
    if not checked:
        monkeypatch.setattr(WindowFence, "check_account", lambda *_: None)
    scenario.open()
    database = BackUp(scenario.settings.store.url)
    first = Promise.from_json(scenario.promise(0, query="trains").json())
    database.restore()
    again = scenario.promise(0, query="violin")
    if checked:
        assert again.status_code == 503 and "counter is behind the fence" in again.json()["detail"]
        return
    second = Promise.from_json(again.json())  # two for one counter: evidence, check 12
    assert second.promised.counter == first.promised.counter and second.identity != first.identity


# --- times: what they have to do with the checkpoints around them ---


@pytest.fixture
def timed(make_scenario: Any, embedder: Any) -> Any:
    """A scenario whose window can be audited, and whose answers can be slow."""
    return make_scenario(embedder=lambda _: embedder, mechanism=Drawing)


def failed(scenario: Any) -> list[str]:
    """Run the window to its end; return the names of the checks that failed."""
    scenario.hand_over()
    scenario.draw()
    checks = scenario.decide()["checks"]
    return [each["id"] for each in checks if each["status"] == "FAIL"]


@pytest.mark.parametrize("checked", [True, False])
def test_a_late_request_for_a_cosignature(
    timed: Any, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    """It hangs for longer than the skew, and does not cover an entry that is made meanwhile."""
    honest = cosigner.add_checkpoint
    if not checked:
        monkeypatch.setattr(
            cosigner,
            "add_checkpoint",
            lambda *arguments, **options: honest(*arguments, **{**options, "read": None}),
        )
    timed.open()
    record_of(timed.ask())
    forward, waits = timed.transport.handle_request, iter([True])

    def slow(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("add-checkpoint") and next(waits, False):
            record_of(timed.ask("cyd"))
            timed.clock.now += 1000 * (SKEW + 2)
        return forward(request)

    monkeypatch.setattr(timed.transport, "handle_request", slow)
    if checked:
        with pytest.raises(Exception, match="answered 503"):
            timed.service.driver.checkpoint("w1")
    timed.service.driver.checkpoint("w1")
    assert failed(timed) == ([] if checked else ["schedule"])


@pytest.mark.parametrize("checked", [True, False])
def test_an_answer_that_takes_longer_than_the_skew(
    timed: Any, monkeypatch: pytest.MonkeyPatch, checked: bool
) -> None:
    """A checkpoint is cosigned while it is computed: its time is that of its commit, or too old."""
    if not checked:
        record = Admitted.record
        monkeypatch.setattr(
            Admitted, "record", lambda *arguments: replace(record(*arguments), time=timed.clock())
        )
        monkeypatch.setattr(Selected, "stamp", lambda self, current, record: record)
    timed.open()

    def meanwhile() -> None:
        timed.service.mechanism.meanwhile = lambda: None
        record_of(timed.ask("cyd"))
        timed.clock.now += 1000 * (SKEW + 2)
        timed.service.driver.checkpoint("w1")

    timed.service.mechanism.meanwhile = meanwhile
    record_of(timed.ask("ada"))
    timed.service.driver.checkpoint("w1")
    assert failed(timed) == ([] if checked else ["schedule"])
