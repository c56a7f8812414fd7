"""Windows with a beacon: late, forged and withheld rounds, between the real services."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from exact_windows import EXACT, ask
from ragaudit.client.errors import AnswerRejected
from ragaudit.client.window import Pins, authenticate
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.encoding.text import b64_decode
from ragaudit.lab.scenario.third_parties import SigningChain
from ragaudit.ledger.messages import beacon
from ragaudit.ledger.messages.beacon import BeaconRound
from ragaudit.ledger.messages.shown import ShownWindow
from ragaudit.prover.errors import VerifierRefused
from ragaudit.prover.store.states import State
from ragaudit.serving.rounds import BeaconSettings
from scenario import START, WINDOW, ProverScenario

pytestmark = ON_EACH_ENGINE
CHAIN = SigningChain(genesis=START // 1000 - 1000)
DELAY = 5


def write(folder: Path, shown: BeaconRound, number: int | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number or shown.round}.json").write_bytes(shown.encode())


class Mixed:
    """A window without noise, and the folders in which the verifier looks for rounds.

    Attributes:
        first, second: the verifier's sources, ``own`` the prover's.
    """

    def __init__(self, scenario: ProverScenario, *, own: bool) -> None:
        self.scenario = scenario
        folder = scenario.folder / "verifier"
        self.first, self.second = folder / "first", folder / "second"
        self.own = scenario.folder / "rounds"
        section = BeaconSettings(
            chain_file=folder / "chain.json",
            sources=(str(self.own),) if own else (),
            every_seconds=0.1,
        )
        for each in (self.first, self.second, self.own):
            each.mkdir()
        scenario.settings = scenario.settings.model_copy(update={"beacon": section})
        scenario.restart(scenario.components)

    def step(self) -> None:
        """Steps of the prover, with what both sides ask beside."""
        for _ in range(4):
            self.scenario.service.driver.step("w1")
            self.verifier_rounds.wait()
            self.scenario.service.rounds.wait()

    @property
    def verifier_rounds(self) -> Any:
        return self.scenario.verifier.app.state.service.sampler.rounds  # type: ignore[attr-defined]

    def status(self) -> Any:
        path = "/v1/operator/windows/w1"
        return self.scenario.api.get(path, headers=self.scenario.operator).json()["beacon"]

    def shown(self) -> Any:
        return self.scenario.verifier.get("/v1/windows/w1").json()["beacon"]

    def countersign(self, document: dict[str, Any] = EXACT) -> None:
        """A window that is countersigned, with ada registered, at its first round's time."""
        self.scenario.service.create_window("w1", {**document, "beacon_delay_seconds": DELAY})
        self.scenario.drive(State.COUNTERSIGNED)
        self.scenario.register("ada")
        self.scenario.service.driver.checkpoint("w1")
        self.scenario.clock.at(self.scenario.policy().release_instant(1))

    def reach(self, state: State, folder: Path) -> None:
        """Show the rounds that are due in a folder, and step until the state is reached."""
        policy = self.scenario.policy()
        for _ in range(60):
            if self.scenario.state() is state:
                return
            for a in range(1, policy.activations + 1):
                if self.scenario.clock.now >= 1000 * policy.release_instant(a):
                    write(folder, CHAIN.round(policy.round_of(a)))
            self.step()
            self.scenario.service.driver.checkpoint("w1")
            self.scenario.verifier.get("/v1/windows/w1/progress")
        raise AssertionError(f"{self.scenario.state()} instead of {state}")

    def finish(self, folder: Path) -> Any:
        """The predicate of the verdict."""
        scenario, policy = self.scenario, self.scenario.policy()
        scenario.clock.at(policy.end)
        self.reach(State.CLOSED, folder)
        self.step()
        scenario.clock.at(policy.release_instant(policy.activations))
        self.reach(State.CHALLENGED, folder)
        scenario.clock.at(policy.release_time // 1000)
        self.reach(State.ARCHIVED, folder)
        envelope = json.loads(scenario.service.windows.get("w1").verdict or b"")
        predicate = json.loads(b64_decode(envelope["payload"]))["predicate"]
        faults = {
            check["id"]: (check["reason"], check["evidence"])
            for check in predicate["checks"]
            if check["status"] in {"FAIL", "NOT RUN"}
        }
        assert (predicate["result"], faults) == ("PASS", {})
        return predicate


@pytest.fixture
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Mixed]:
    def make(*, own: bool = False) -> Mixed:
        file = tmp_path / "verifier/chain.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(CHAIN.info()))
        return Mixed(request.getfixturevalue("scenario"), own=own)

    return make


def test_a_late_round_delays_activation_and_sample(mixed: Callable[..., Mixed]) -> None:
    made = mixed()
    made.countersign()
    scenario, policy = made.scenario, made.scenario.policy()
    scenario.clock.at(policy.release_instant(1) + 30)
    made.step()
    assert scenario.state() is State.COUNTERSIGNED
    waits = {"round": policy.round_of(1), "since": policy.release_instant(1)}
    for status in (made.status(), made.shown()):
        assert (status["waits_for"], status["mixed_in"]) == (waits, [])
        assert status["chain"] == CHAIN.chain.hash.hex()
    assert "No such file" in made.shown()["failures"][str(made.first)]
    made.reach(State.OPEN, made.second)
    assert made.status()["mixed_in"] == [policy.round_of(1)]
    assert made.status()["waits_for"] is None
    ask(scenario, "bread", 2)
    scenario.service.driver.checkpoint("w1")
    # The sampling instant comes, and its round does not.
    scenario.clock.at(policy.end)
    made.reach(State.CLOSED, made.second)
    scenario.clock.at(policy.release_instant(policy.activations - 1))
    made.step()
    scenario.clock.at(policy.release_instant(policy.activations) + 60)
    made.step()
    assert scenario.state() is State.CLOSED
    predicate = made.finish(made.second)
    assert predicate["attested"]["beacon"]["rounds"] == [
        policy.round_of(a) for a in range(1, policy.activations + 1)
    ]
    report = scenario.verifier.get("/v1/windows/w1/report.txt").text
    assert str(policy.round_of(1)) in report and CHAIN.chain.hash.hex() in report
    assert made.shown()["mixed_in"] == predicate["attested"]["beacon"]["rounds"]


def test_a_forged_round_is_refused_and_the_next_source_asked(
    mixed: Callable[..., Mixed],
) -> None:
    made = mixed()
    made.countersign()
    number = made.scenario.policy().round_of(1)
    write(made.first, BeaconRound(number, CHAIN.round(number + 1).signature), number)
    made.step()
    assert made.scenario.state() is State.COUNTERSIGNED
    failures = made.shown()["failures"]
    assert "signature does not verify" in failures[str(made.first)]
    made.reach(State.OPEN, made.second)
    assert list(made.shown()["failures"]) == [str(made.first)]


def test_an_account_verifies_the_rounds(
    mixed: Callable[..., Mixed], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = mixed()
    made.countersign()
    made.reach(State.OPEN, made.first)
    shown = made.scenario.api.get("/v1/windows/w1").json()
    pins = Pins(verifier=made.scenario.policy().keys.verifier)
    assert authenticate(ShownWindow.from_json(shown), pins).view.covered_sizes
    (activation,) = shown["activations"]
    left_out = {**activation, "round": None}
    with pytest.raises(AnswerRejected):
        authenticate(ShownWindow.from_json({**shown, "activations": [left_out]}), pins)

    def missing() -> Any:
        raise ModuleNotFoundError

    beacon._remembering.cache_clear()
    monkeypatch.setattr(beacon, "arkworks_engine", missing)
    monkeypatch.setattr(beacon, "py_ecc_engine", missing)
    # What this side lacks accuses nobody.
    with pytest.raises(UnsupportedError, match=r"ragaudit-ledger\[beacon\]"):
        authenticate(ShownWindow.from_json(shown), pins)


def test_a_round_that_only_the_prover_finds_goes_to_the_verifier(
    mixed: Callable[..., Mixed],
) -> None:
    made = mixed(own=True)
    made.countersign({**WINDOW, "privacy": "gaussian"})
    made.reach(State.OPEN, made.own)
    answer = made.scenario.ask()
    assert answer.status_code == 200, answer.text
    made.scenario.service.driver.checkpoint("w1")
    predicate = made.finish(made.own)
    assert {check["id"]: check["status"] for check in predicate["checks"]}["beacon"] == "PASS"


def test_rounds_that_the_verifier_does_not_take(mixed: Callable[..., Mixed]) -> None:
    made = mixed()
    made.countersign()
    client, policy = made.scenario.service.verifier, made.scenario.policy()
    first = policy.round_of(1)
    for shown, status, reason in (
        (BeaconRound(first, CHAIN.round(first + 1).signature), 422, "does not verify"),
        (CHAIN.round(first + 1), 422, "one of an instant"),
        (CHAIN.round(policy.round_of(2)), 425, "has not come"),
    ):
        with pytest.raises(VerifierRefused) as refused:
            client.put_round("w1", shown)
        assert refused.value.status == status, refused.value
        assert reason in str(refused.value)
    client.put_round("w1", CHAIN.round(first))
    made.step()
    assert made.scenario.state() is not State.COUNTERSIGNED


def test_windows_of_another_chain_or_without_a_beacon(mixed: Callable[..., Mixed]) -> None:
    made = mixed()
    made.scenario.service.create_window("w2", {**EXACT, "beacon_delay_seconds": None})
    made.scenario.drive(State.COUNTERSIGNED, "w2")
    path = "/v1/operator/windows/w2"
    headers = made.scenario.operator
    assert made.scenario.api.get(path, headers=headers).json()["beacon"] is None
    assert "beacon" not in made.scenario.verifier.get("/v1/windows/w2").json()
    with pytest.raises(VerifierRefused) as refused:
        made.scenario.service.verifier.put_round("w2", CHAIN.round(1))
    assert refused.value.status == 409
    made.scenario.service.rounds.chain = SigningChain("another beacon", genesis=1).chain
    made.scenario.service.create_window("w3", {**EXACT, "beacon_delay_seconds": DELAY})
    made.scenario.service.driver.step("w3")
    with pytest.raises(VerifierRefused, match="a beacon that this verifier does not follow"):
        made.scenario.service.driver.step("w3")
