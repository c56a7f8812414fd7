"""Providers apart: names of windows are each one's own, and so is what each may store."""

import json
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from procedure_cases import use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.tagged import enc
from ragaudit.lab.scenario.policy import COUNTERSIGNED, seeded
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.messages.chains import activation_chain
from ragaudit.ledger.messages.challenge import Activation, Challenge, Countersignature
from ragaudit.ledger.messages.items import POLICY
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.verifier.service import challenge, providers, submissions, windows
from ragaudit.verifier.service.challenge import Sampler
from ragaudit.verifier.settings import Limits
from recording_auditor import RecordingAuditor
from service_window import ServiceWindow
from verifier_service_harness import (
    EMBEDDER,
    ORIGIN,
    PROVIDER,
    START,
    WINDOW,
    Story,
    VerifierScenario,
    challenge_of,
    index_of,
    problem_of,
)

BASE = f"/v1/windows/{WINDOW}"
OTHER = "other.example"


class Rival:
    """A second pinned provider of a scenario, with a window of the same name."""

    def __init__(self, scenario: VerifierScenario) -> None:
        self.scenario, self.key = scenario, seeded("rival")
        providers.add(scenario.service.database, OTHER, self.key.public)

    def send(self, method: str, target: str, body: bytes = b"") -> Any:
        headers = self.scenario.headers(method, target, body, key=self.key, provider=OTHER)
        return self.scenario.client.request(method, target, content=body, headers=headers)

    def policy(self) -> Any:
        """With everything of the first window's that it can name, the log's key among it."""
        policy = self.scenario.policy(provider=OTHER)
        log = SigningKey(windows.of(OTHER, WINDOW), ED25519, self.scenario.log.key.private)
        own = {"provider": self.key.public.raw.hex(), "log": str(log.verifier_key)}
        return {**policy, "keys": {**policy["keys"], **own}}

    def register(self) -> None:
        document = {"policy": self.policy(), "embedder": EMBEDDER.to_json()}
        answer = self.send("POST", "/v1/windows", json.dumps(document).encode())
        assert answer.status_code == 201, answer.text


@pytest.fixture
def rival(scenario: VerifierScenario) -> Rival:
    return Rival(scenario)


def test_a_name_is_not_taken_from_who_registers_later(scenario: Any, rival: Any) -> None:
    rival.register()
    scenario.open_window()
    with scenario.service.database.read() as connection:
        states = [
            windows.get(connection, windows.of(name, WINDOW)).state for name in (PROVIDER, OTHER)
        ]
    assert states == ["countersigned", "registered"]


def test_a_provider_reaches_its_own_window_only(scenario: Any, rival: Any) -> None:
    """Without a window it has none of that name; with one, it acts on that."""
    scenario.register()
    target, index = f"{BASE}/tenants/t1/versions/1", index_of("t1", b"the rival's")
    problem_of(rival.send("PUT", target, index), 404, "not-found")
    rival.register()
    assert rival.send("PUT", target, index).status_code == 204
    assert (
        scenario.send("PUT", target, index_of("t1", b"index")).status_code == 204
    )  # none was there
    opening = canonical_json.dumps(scenario.opening())
    problem_of(rival.send("POST", f"{BASE}/countersign", opening), 409, "conflict")  # t2 is missing
    # A parameter does not move a signed request to the window that it names.
    problem_of(
        rival.send("POST", f"{BASE}/countersign?provider={PROVIDER}", opening), 409, "conflict"
    )


def test_an_ambiguous_name_needs_the_provider(scenario: Any, rival: Any) -> None:
    scenario.register()
    assert scenario.client.get(BASE).json()["provider"] == PROVIDER
    rival.register()
    told = problem_of(scenario.client.get(BASE), 409, "ambiguous")
    assert told["expected"] == "?provider=<name>"
    for name in (PROVIDER, OTHER):
        assert scenario.client.get(f"{BASE}?provider={name}").json()["provider"] == name
    problem_of(scenario.client.get(f"{BASE}?provider=nobody"), 404, "not-found")
    for impossible in ("", "a/ragaudit/b", "A", "x" * 65):
        assert scenario.client.get(BASE, params={"provider": impossible}).status_code == 400


def test_a_provider_is_needed_before_a_body_is_read(scenario: Any, rival: Any) -> None:
    scenario.open_window()
    rival.register()
    for call in ("receipts", "refusals", "claims", "statements", "disputes"):
        problem_of(scenario.client.post(f"{BASE}/{call}", content=b"no document"), 409, "ambiguous")


def test_submissions_end_in_no_other_window(scenario: Any, rival: Any) -> None:
    """A rival's window is a full one, with the first provider's name for it and log key."""
    scenario.open_window()
    rival.register()
    for tenant in ("t1", "t2"):
        rival.send("PUT", f"{BASE}/tenants/{tenant}/versions/1", index_of(tenant, b"index"))
    opened = rival.send("POST", f"{BASE}/countersign", canonical_json.dumps(scenario.opening()))
    assert opened.status_code == 200, opened.text  # this auditor takes anything
    story = Story(scenario)
    body = canonical_json.dumps({"receipts": [story.receipt(3).to_json()]})
    misled = scenario.client.post(f"{BASE}/receipts?provider={OTHER}", content=body)
    assert problem_of(misled, 422, "rejected")["expected"] == f"{OTHER}/ragaudit/{WINDOW}"
    final, entry = story.cosign(), story.documents()[1]
    document = {**entry, "proof": story.proof(1, final).encode().decode()}
    document.pop("kind")
    shown = canonical_json.dumps({"disputes": [], "registration": document})
    misled = scenario.client.post(f"{BASE}/disputes?provider={OTHER}", content=shown)
    problem_of(misled, 422, "note-rejected")
    right = scenario.client.post(f"{BASE}/disputes?provider={PROVIDER}", content=shown)
    assert right.status_code == 200, right.text
    taken = scenario.client.post(f"{BASE}/receipts?provider={PROVIDER}", content=body)
    assert taken.json() == {"accepted": 1, "known": 0}
    with scenario.service.database.read() as connection:
        counts = [
            submissions.count(connection, windows.of(name, WINDOW), submissions.Kind.RECEIPT)
            for name in (PROVIDER, OTHER)
        ]
    assert counts == [1, 0]


def test_a_forgotten_window_frees_nothing_of_its_namesake(scenario: Any, rival: Any) -> None:
    rival.register()
    scenario.open_window()
    scenario.clock.now += 10 * 86_400_000
    scenario.service.scheduler.tick()
    with scenario.service.database.read() as connection:
        assert windows.find(connection, windows.of(OTHER, WINDOW)) is None
        assert windows.get(connection, ORIGIN).countersigned is not None
    assert scenario.client.get(BASE).json()["provider"] == PROVIDER  # the name is unambiguous again


@pytest.fixture
def real(tmp_path: Path) -> Iterator[VerifierScenario]:
    use_cached_table()
    with VerifierScenario(tmp_path, None, Clock(1000 * (COUNTERSIGNED - 60))).running() as running:
        yield running


def decide(window: ServiceWindow) -> Verdict:
    scenario = window.scenario
    for _ in range(6000):
        if not scenario.service.runner.busy():
            break
        threading.Event().wait(0.01)
    answer = scenario.client.get(window.target("/verdict"))
    assert answer.status_code == 200, answer.text
    return Verdict.verify(answer.content, scenario.keys.verdict.public)


def assert_bound(*both: ServiceWindow) -> None:
    """No signed message of 8.4 holds for the other window, though each names the same one."""
    for own, other in (both, both[::-1]):
        signed = Countersignature.parse(
            own.send("POST", "/countersign", own.opening_request()).content
        )
        released = Activation.parse(own.scenario.client.get(own.target("/activations/1")).content)
        drawn = Challenge.parse(own.send("GET", "/challenge").content)
        assert {each.window for each in (signed, released, drawn)} == {other.window}
        for window, failing in ((own, nullcontext()), (other, pytest.raises(RagauditError))):
            opening = {"opening_salt": window.entries[0][1], "opening_body": window.entries[0][2]}
            chain = activation_chain(window.window)
            anchor = chain.walk(window.chain_seed, window.policy.activations)
            with failing:
                signed.authenticate(window.policy, **opening)
                assert signed.activation_anchor == anchor
            with failing:
                released.authenticate(window.policy, anchor=anchor, number=1)
            with failing:
                drawn.authenticate(window.policy, anchor=anchor)


def test_two_windows_of_one_name_run_to_their_verdicts(real: Any) -> None:
    """At the same time, step by step, with the procedure that judges; each passes."""
    both = [ServiceWindow(real), ServiceWindow(real, seed=2, provider=OTHER)]
    for window in both:
        window.open()
    for events in zip(*(window.script() for window in both), strict=True):
        for window, (event, *arguments) in zip(both, events, strict=True):
            getattr(window, event)(*arguments)
    for step in ("close", "submit", "hand_over", "reach_sampling"):
        for window in both:
            getattr(window, step)()
    assert_bound(*both)
    for window in both:
        window.respond()
    real.service.scheduler.tick()
    verdicts = [decide(window) for window in both]
    assert [verdict.result for verdict in verdicts] == ["PASS", "PASS"]
    assert len({dict(verdict.subjects)[POLICY] for verdict in verdicts}) == 2
    problem_of(real.client.get(f"/v1/windows/{both[0].window}/verdict"), 409, "ambiguous")


def test_samples_of_few_windows_stay_in_memory(
    scenario: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may ask for the state of any window; what that loads makes room again."""
    loaded: list[str] = []

    def read(_connection: object, origin: str, _name: str) -> bytes:
        loaded.append(origin)
        return challenge_of([len(loaded)])

    monkeypatch.setattr(challenge, "demand_item", read)
    sampler = Sampler(scenario.service.database, scenario.keys, scenario.service.sampler.rounds)
    origins = [windows.of(PROVIDER, f"w{number}") for number in range(challenge.MAX_SAMPLES + 1)]
    with scenario.service.database.read() as connection:
        for origin in origins[:-1]:
            sampler.sample(connection, origin)
        sampler.sample(connection, origins[0])
        assert loaded == origins[:-1]
        sampler.sample(connection, origins[-1])  # in the place of the one asked about longest ago
        assert sampler.sample(connection, origins[0]) == {1}
        assert len(loaded) == len(origins)
        sampler.sample(connection, origins[1])
        assert loaded[-1] == origins[1]
    assert len(sampler._samples) == challenge.MAX_SAMPLES


INDEX = "/v1/windows/{}/tenants/t1/versions/1"


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Any]:
    """A service that lets a provider have three windows waiting, five a day, and 20 kB."""
    scenario = VerifierScenario(tmp_path, RecordingAuditor())
    limits = Limits(waiting_windows=3, windows_per_day=5, waiting_bytes=20_000, index_bytes=9_000)
    with scenario.running(scenario.settings.model_copy(update={"limits": limits})):
        yield scenario


def register(scenario: VerifierScenario, name: str, status: int = 201) -> Any:
    policy = scenario.policy(window=name)
    policy["keys"] = {**policy["keys"], "log": policy["keys"]["log"].replace(WINDOW, name)}
    answer = scenario.send("POST", "/v1/windows", {"policy": policy, "embedder": {}})
    assert answer.status_code == status, answer.text
    return answer


def test_windows_that_wait(strict: Any) -> None:
    for name in ("w1", "w2", "w3"):
        register(strict, name)
    problem_of(register(strict, "w4", 429), 429, "cap-reached")
    register(strict, "w3", 200)  # the same again is nothing new


def test_another_provider_has_its_own(strict: Any) -> None:
    for name in ("w1", "w2", "w3"):
        register(strict, name)
    strict.provider, strict.provider_key = "globex", seeded("globex")
    providers.add(strict.service.database, "globex", strict.provider_key.public)
    policy = strict.policy(window="w9", provider="globex")
    policy["keys"] = {**policy["keys"], "provider": strict.provider_key.public.raw.hex()}
    answer = strict.send("POST", "/v1/windows", {"policy": policy, "embedder": {}})
    assert answer.status_code == 201, answer.text


def test_windows_in_a_day(strict: Any) -> None:
    """Countersigned or refused ones do not wait any more, and count for a day."""
    for number in range(5):
        register(strict, f"w{number}")
        with strict.service.database.write() as transaction:
            windows.note(transaction, windows.of(PROVIDER, f"w{number}"), refused=transaction.now)
    problem_of(register(strict, "w5", 429), 429, "cap-reached")
    strict.clock.now += 86_400_000
    register(strict, "w5")


def test_bytes_of_refused_windows_count_for_good(strict: Any) -> None:
    register(strict, "w1")
    assert strict.send("PUT", INDEX.format("w1"), index_of("t1", b"x" * 8_000)).status_code == 204
    with strict.service.database.write() as transaction:
        windows.note(transaction, windows.of(PROVIDER, "w1"), refused=transaction.now)
        before = providers.bytes_left(
            transaction.connection, PROVIDER, Limits(waiting_bytes=20_000)
        )
    strict.clock.now += 10 * 86_400_000
    strict.service.scheduler.tick()
    with strict.service.database.read() as connection:
        assert providers.bytes_left(connection, PROVIDER, Limits(waiting_bytes=20_000)) == before
    with strict.service.database.write() as transaction:  # what was taken is not noise
        windows.note(transaction, windows.of(PROVIDER, "w1"), countersigned=1, refused=None)
        left = providers.bytes_left(transaction.connection, PROVIDER, Limits(waiting_bytes=20_000))
    assert left == 20_000


def test_bytes_that_wait(strict: Any) -> None:
    register(strict, "w1")
    register(strict, "w2")
    large = index_of("t1", b"x" * 8_000)
    too_large = index_of("t1", b"x" * 9_000)
    problem_of(strict.send("PUT", INDEX.format("w1"), too_large), 413, "too-large")
    assert strict.send("PUT", INDEX.format("w1"), large).status_code == 204
    # Two policies and one index are stored: what is left is less than one index more.
    second = strict.send("PUT", INDEX.format("w2"), large)
    third = strict.send("PUT", INDEX.format("w2").replace("t1", "t2"), large)
    assert {second.status_code, third.status_code} & {413, 429}


@pytest.mark.parametrize(
    "noise",
    [
        b"",
        b"noise" * 1000,
        index_of("t1", b"proof")[:-1],
        index_of("t1", b"proof") + b"x",
        index_of("t1", b"x" * (2**20 + 1)),
        enc("ragaudit/v1/index/commitment", "w1", "t1", 1, 2, 4, b"c" * 63, None, b"d" * 63, b"p"),
        enc("ragaudit/v1/index/commitment", "w1", "t1", 1, 2, 4, b"c" * 64, b"x", b"d" * 64, b"p"),
        enc("ragaudit/v1/index/commitment", "w1", "t1", 1, 2, 4, b"c" * 64, None, b"d" * 32, b"p"),
        enc(
            "ragaudit/v1/index/commitment", "w1", "t1", b"1", 2, 4, b"c" * 64, None, b"d" * 64, b""
        ),
        enc("ragaudit/v1/index", "w1", "t1", 1, 2, 4, b"c" * 64, None, b"d" * 64, b"p"),
        enc("ragaudit/v1/index/commitment", "w1", "t1", 1, 2, 4, b"c" * 64, None, b"d" * 64),
    ],
)
def test_noise_is_not_stored_as_an_index(tmp_path: Path, noise: Any) -> None:
    with VerifierScenario(tmp_path, RecordingAuditor()).running() as scenario:
        register(scenario, "w1")
        problem_of(scenario.send("PUT", INDEX.format("w1"), noise), 400, "malformed-record")
        with scenario.service.database.read() as connection:
            assert [
                each.name for each in windows.list_items(connection, ORIGIN, "public/index")
            ] == []


def test_what_is_never_countersigned_is_forgotten(strict: Any) -> None:
    register(strict, "w1")
    register(strict, "w2")
    strict.send("PUT", INDEX.format("w1"), index_of("t1", b"proof"))
    with strict.service.database.write() as transaction:
        windows.note(transaction, windows.of(PROVIDER, "w2"), refused=transaction.now)
    strict.clock.now = 1000 * START + 86_400_000
    strict.service.scheduler.tick()
    assert strict.client.get("/v1/windows/w1").status_code == 200
    strict.clock.now += 3_600_001
    strict.service.scheduler.tick()
    problem_of(strict.client.get("/v1/windows/w1"), 404, "not-found")
    assert strict.client.get("/v1/windows/w2").status_code == 200  # its verdict stays
    with strict.service.database.read() as connection:
        assert windows.list_items(connection, ORIGIN) == []
    register(strict, "w1")  # the name is free again
