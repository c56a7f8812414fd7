"""Names of windows are each provider's own: nobody takes one, and nothing ends in another's."""

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
from ragaudit.lab.scenario.clock import Clock
from ragaudit.lab.scenario.policy import COUNTERSIGNED, seeded
from ragaudit.ledger.log.notes import ED25519, SigningKey
from ragaudit.ledger.messages.chains import activation_chain
from ragaudit.ledger.messages.challenge import Challenge
from ragaudit.ledger.messages.countersignature import Activation, Countersignature
from ragaudit.ledger.messages.items import POLICY
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.verifier.service import challenge, providers, submissions, windows
from ragaudit.verifier.service.challenge import Sampler
from service_window import ServiceWindow
from verifier_service_harness import (
    EMBEDDER,
    ORIGIN,
    PROVIDER,
    WINDOW,
    Desk,
    Story,
    challenge_of,
    index_of,
    problem_of,
)

BASE = f"/v1/windows/{WINDOW}"
OTHER = "other.example"


class Rival:
    """A second pinned provider of a desk, with a window of the same name."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.key = desk, seeded("rival")
        providers.add(desk.service.database, OTHER, self.key.public)

    def send(self, method: str, target: str, body: bytes = b"") -> Any:
        headers = self.desk.headers(method, target, body, key=self.key, provider=OTHER)
        return self.desk.client.request(method, target, content=body, headers=headers)

    def policy(self) -> Any:
        """With everything of the first window's that it can name, the log's key among it."""
        policy = self.desk.policy(provider=OTHER)
        log = SigningKey(windows.of(OTHER, WINDOW), ED25519, self.desk.log.key.private)
        own = {"provider": self.key.public.raw.hex(), "log": str(log.verifier_key)}
        return {**policy, "keys": {**policy["keys"], **own}}

    def register(self) -> None:
        document = {"policy": self.policy(), "embedder": EMBEDDER.to_json()}
        answer = self.send("POST", "/v1/windows", json.dumps(document).encode())
        assert answer.status_code == 201, answer.text


@pytest.fixture
def rival(desk: Desk) -> Rival:
    return Rival(desk)


def test_a_name_is_not_taken_from_who_registers_later(desk: Any, rival: Any) -> None:
    rival.register()
    desk.open_window()
    with desk.service.database.read() as connection:
        states = [
            windows.get(connection, windows.of(name, WINDOW)).state for name in (PROVIDER, OTHER)
        ]
    assert states == ["countersigned", "registered"]


def test_a_provider_reaches_its_own_window_only(desk: Any, rival: Any) -> None:
    """Without a window it has none of that name; with one, it acts on that."""
    desk.register()
    target, index = f"{BASE}/tenants/t1/versions/1", index_of("t1", b"the rival's")
    problem_of(rival.send("PUT", target, index), 404, "not-found")
    rival.register()
    assert rival.send("PUT", target, index).status_code == 204
    assert desk.send("PUT", target, index_of("t1", b"index")).status_code == 204  # none was there
    opening = canonical_json.dumps(desk.opening())
    problem_of(rival.send("POST", f"{BASE}/countersign", opening), 409, "conflict")  # t2 is missing
    # A parameter does not move a signed request to the window that it names.
    problem_of(
        rival.send("POST", f"{BASE}/countersign?provider={PROVIDER}", opening), 409, "conflict"
    )


def test_an_ambiguous_name_needs_the_provider(desk: Any, rival: Any) -> None:
    desk.register()
    assert desk.client.get(BASE).json()["provider"] == PROVIDER
    rival.register()
    told = problem_of(desk.client.get(BASE), 409, "ambiguous")
    assert told["expected"] == "?provider=<name>"
    for name in (PROVIDER, OTHER):
        assert desk.client.get(f"{BASE}?provider={name}").json()["provider"] == name
    problem_of(desk.client.get(f"{BASE}?provider=nobody"), 404, "not-found")
    for impossible in ("", "a/ragaudit/b", "A", "x" * 65):
        assert desk.client.get(BASE, params={"provider": impossible}).status_code == 400


def test_a_provider_is_needed_before_a_body_is_read(desk: Any, rival: Any) -> None:
    desk.open_window()
    rival.register()
    for call in ("receipts", "refusals", "claims", "statements", "disputes"):
        problem_of(desk.client.post(f"{BASE}/{call}", content=b"no document"), 409, "ambiguous")


def test_submissions_end_in_no_other_window(desk: Any, rival: Any) -> None:
    """A rival's window is a full one, with the first provider's name for it and log key."""
    desk.open_window()
    rival.register()
    for tenant in ("t1", "t2"):
        rival.send("PUT", f"{BASE}/tenants/{tenant}/versions/1", index_of(tenant, b"index"))
    opened = rival.send("POST", f"{BASE}/countersign", canonical_json.dumps(desk.opening()))
    assert opened.status_code == 200, opened.text  # this auditor takes anything
    story = Story(desk)
    body = canonical_json.dumps({"receipts": [story.receipt(3).to_json()]})
    misled = desk.client.post(f"{BASE}/receipts?provider={OTHER}", content=body)
    assert problem_of(misled, 422, "rejected")["expected"] == f"{OTHER}/ragaudit/{WINDOW}"
    final, entry = story.cosign(), story.documents()[1]
    document = {**entry, "proof": story.proof(1, final).encode().decode()}
    document.pop("kind")
    shown = canonical_json.dumps({"disputes": [], "registration": document})
    misled = desk.client.post(f"{BASE}/disputes?provider={OTHER}", content=shown)
    problem_of(misled, 422, "note-rejected")
    right = desk.client.post(f"{BASE}/disputes?provider={PROVIDER}", content=shown)
    assert right.status_code == 200, right.text
    taken = desk.client.post(f"{BASE}/receipts?provider={PROVIDER}", content=body)
    assert taken.json() == {"accepted": 1, "known": 0}
    with desk.service.database.read() as connection:
        counts = [
            submissions.count(connection, windows.of(name, WINDOW), submissions.Kind.RECEIPT)
            for name in (PROVIDER, OTHER)
        ]
    assert counts == [1, 0]


def test_a_forgotten_window_frees_nothing_of_its_namesake(desk: Any, rival: Any) -> None:
    rival.register()
    desk.open_window()
    desk.clock.now += 10 * 86_400_000
    desk.service.scheduler.tick()
    with desk.service.database.read() as connection:
        assert windows.find(connection, windows.of(OTHER, WINDOW)) is None
        assert windows.get(connection, ORIGIN).countersigned is not None
    assert desk.client.get(BASE).json()["provider"] == PROVIDER  # the name is unambiguous again


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Desk]:
    use_cached_table()
    with Desk(tmp_path, None, Clock(1000 * (COUNTERSIGNED - 60))).running() as running:
        yield running


def decide(window: ServiceWindow) -> Verdict:
    desk = window.desk
    for _ in range(6000):
        if not desk.service.runner.busy():
            break
        threading.Event().wait(0.01)
    answer = desk.client.get(window.target("/verdict"))
    assert answer.status_code == 200, answer.text
    return Verdict.verify(answer.content, desk.keys.verdict.public)


def assert_bound(*both: ServiceWindow) -> None:
    """No signed message of 8.4 holds for the other window, though each names the same one."""
    for own, other in (both, both[::-1]):
        signed = Countersignature.parse(
            own.send("POST", "/countersign", own.opening_request()).content
        )
        released = Activation.parse(own.desk.client.get(own.target("/activations/1")).content)
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


def test_samples_of_few_windows_stay_in_memory(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may ask for the state of any window; what that loads makes room again."""
    loaded: list[str] = []

    def read(_connection: object, origin: str, _name: str) -> bytes:
        loaded.append(origin)
        return challenge_of([len(loaded)])

    monkeypatch.setattr(challenge, "_demand", read)
    sampler = Sampler(desk.service.database, desk.keys)
    origins = [windows.of(PROVIDER, f"w{number}") for number in range(challenge.MAX_SAMPLES + 1)]
    with desk.service.database.read() as connection:
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
