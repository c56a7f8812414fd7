"""Time stamps of opening and end: asked for, stored, handed over, judged; OpenSSL's, and ours."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from exact_windows import ask, start
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.lab.scenario.third_parties import authority as scenario_authority
from ragaudit.ledger.messages.evidence import TimeStamp
from ragaudit.prover.errors import VerifierRefused
from ragaudit.prover.lifecycle.cosigning import Stamping
from ragaudit.prover.settings import StampSettings
from scenario import ProverScenario
from time_authority import Authority, AuthorityServer

pytestmark = ON_EACH_ENGINE


@pytest.fixture(scope="module")
def openssl(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def server(openssl: Authority) -> Iterator[AuthorityServer]:
    with closing(AuthorityServer(openssl)) as made:
        yield made


class Stamped:
    """A window without noise whose prover asks one authority on the loopback."""

    def __init__(self, scenario: ProverScenario, server: AuthorityServer, roots: Path) -> None:
        self.scenario = scenario
        self.server = server
        section = StampSettings(authorities=(server.url,), roots_file=roots, timeout_seconds=20)
        scenario.settings = scenario.settings.model_copy(update={"time_stamps": section})
        scenario.restart(scenario.components)

    def round(self) -> None:
        """Two rounds: the second gives the verifier what the first one asked for."""
        cosigning = self.scenario.service.cosigning
        assert cosigning._stamping is not None
        self.scenario.service.driver.checkpoint("w1")
        for _ in range(2):
            cosigning.step("w1")
            cosigning._stamping.wait()

    def status(self) -> Any:
        path = "/v1/operator/windows/w1"
        return self.scenario.api.get(path, headers=self.scenario.operator).json()["time_stamps"]

    def finish(self) -> Any:
        """The predicate of the verdict."""
        self.scenario.hand_over()
        self.round()
        self.scenario.draw()
        return self.scenario.decide()


@pytest.fixture
def stamped(
    request: pytest.FixtureRequest, tmp_path: Path, server: AuthorityServer
) -> Callable[[bytes], Stamped]:
    def make(roots: bytes) -> Stamped:
        file = tmp_path / "verifier/roots.pem"
        file.parent.mkdir(parents=True)
        file.write_bytes(roots)
        return Stamped(request.getfixturevalue("scenario"), server, file)

    return make


def test_the_verdict_says_by_when_the_log_existed(stamped: Callable[[bytes], Stamped]) -> None:
    ours = scenario_authority()
    made = stamped(ours.roots)
    scenario = made.scenario
    made.server.answer = lambda query: ours.answer(query, scenario.clock.now // 1000)
    start(scenario, time_stamps="required")
    made.round()
    status = made.status()
    assert list(status["opening"]) == [made.server.url] and status["failures"] == {}
    ask(scenario, "bread", 2)
    made.round()
    predicate = made.finish()
    failed = [check for check in predicate["checks"] if check["status"] == "FAIL"]
    assert (predicate["result"], failed) == ("PASS", [])
    stated = predicate["attested"]["time_stamps"]
    policy = scenario.policy()
    assert stated["opening"]["time"] <= policy.start + policy.merge_delay_seconds
    assert policy.end <= stated["final"]["time"] <= policy.sampling_instant
    assert made.status()["final"][made.server.url]["time"] == stated["final"]["time"]


def test_openssl_stamps_of_another_year_are_not_in_time(
    stamped: Callable[[bytes], Stamped], openssl: Authority
) -> None:
    made = stamped(openssl.roots.read_bytes())
    start(made.scenario, time_stamps="reported")
    made.round()
    assert list(made.status()["opening"]) == [made.server.url]
    predicate = made.finish()
    assert predicate["result"] == "PASS"
    assert predicate["attested"]["time_stamps"] == {"opening": None, "final": None}
    check = predicate["checks"][-1]
    assert (check["id"], check["status"]) == ("time-stamps", "NOT ESTABLISHED")
    assert "2 time stamps of the opening checkpoint, none of them in time" in check["evidence"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda _query: b"no token", "not a time stamp"),
        (lambda query: scenario_authority().answer(query, 1_900_000_000), "trusted root"),
        (lambda _query: bytes(70_000), "too long"),
    ],
)
def test_what_is_no_stamp_is_told_and_asked_for_again(
    stamped: Callable[[bytes], Stamped], openssl: Authority, answer: Any, why: str
) -> None:
    made = stamped(openssl.roots.read_bytes())
    made.server.answer = answer
    start(made.scenario, time_stamps="required")
    made.round()
    status = made.status()
    assert status["opening"] == {} and why in status["failures"][made.server.url]
    ask(made.scenario, "bread", 2)  # nothing waits for it
    made.server.answer = openssl.answer
    made.round()
    assert list(made.status()["opening"]) == [made.server.url]
    assert made.status()["failures"] == {}


def test_what_the_verifier_does_not_take(stamped: Callable[[bytes], Stamped]) -> None:
    ours = scenario_authority()
    made = stamped(ours.roots)
    start(made.scenario, time_stamps="required")
    made.scenario.service.driver.checkpoint("w1")
    live = made.scenario.service.open_windows.get("w1")
    checkpoint = live.log.checkpoints.covering(0)
    assert checkpoint is not None
    size, text = checkpoint.head.size, checkpoint.checkpoint.text.encode()
    give = made.scenario.service.verifier.put_time_stamps
    now = made.scenario.clock.now // 1000
    for token, why in (
        (b"x", "not a time stamp"),
        (ours.stamp(b"else", now), "another checkpoint"),
        (scenario_authority("another root").stamp(text, now), "time stamp"),
    ):
        with pytest.raises(VerifierRefused, match=why):
            give("w1", [TimeStamp(size, token)])
    good = ours.stamp(text, now)
    with pytest.raises(VerifierRefused, match="not cosigned here"):
        give("w1", [TimeStamp(size + 1, good)])
    give("w1", [TimeStamp(size, good)])
    give("w1", [TimeStamp(size, good)])
    made.scenario.clock.at(made.scenario.policy().sampling_instant)
    with pytest.raises(VerifierRefused, match="taken no more"):
        give("w1", [TimeStamp(size, good)])


def test_settings_without_roots(scenario: ProverScenario, tmp_path: Path) -> None:
    service = scenario.service
    url = "http://127.0.0.1:9"
    for roots in (None, tmp_path / "none.pem", Path(__file__)):
        section = StampSettings(authorities=(url,), roots_file=roots)
        with pytest.raises(MalformedSettings):
            Stamping.of(section, service.store, service.verifier)
    assert Stamping.of(StampSettings(), service.store, service.verifier) is None
