"""Questions that skip the application's middleware are answered as those that do not."""

from collections.abc import Callable
from typing import Any

import pytest
from ragaudit.prover.errors import TooManyRequests
from ragaudit.prover.http.questions import Questions
from ragaudit.prover.http.turns import Gate
from scenario import ProverScenario

QUESTION = {"query": "bread", "top_k": 2, "filter": ""}
JSON = {"content-type": "application/json"}
ODD: dict[str, tuple[str, Any, dict[str, str]]] = {
    "a question": ("query", QUESTION, {}),
    "its retry by a key": ("query", QUESTION, {"idempotency-key": "k"}),
    "a key for another": ("query", {**QUESTION, "top_k": 1}, {"idempotency-key": "k"}),
    "a key that is too long": ("query", QUESTION, {"idempotency-key": "k" * 300}),
    "a K too large": ("query", {**QUESTION, "top_k": 99}, {}),
    "a K of another type": ("query", {**QUESTION, "top_k": "2"}, {}),
    "a member too many": ("query", {**QUESTION, "colour": "red"}, {}),
    "no JSON": ("query", b"{", JSON),
    "a name twice": ("query", b'{"top_k":1,"top_k":2,"query":"x"}', JSON),
    "nothing": ("query", b"", JSON),
    "no type": ("query", b'{"query":"bread","top_k":2}', {}),
    "a plain account's promise": ("promise", {**QUESTION, "counter": 0}, {}),
    "no promise to reveal": ("reveal", {"counter": 0, "nonce": "00" * 32}, {}),
    "a nonce too short": ("reveal", {"counter": 0, "nonce": "00"}, {}),
    "a packed body": ("query", QUESTION, {"content-encoding": "gzip"}),
    "a trace": ("query", QUESTION, {"traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}),
    "nobody's key": ("query", QUESTION, {"authorization": "Bearer nobody"}),
    "no key": ("query", QUESTION, {"authorization": ""}),
    "another scheme": ("query", QUESTION, {"authorization": "Basic abc"}),
}


@pytest.fixture
def opened(scenario: ProverScenario) -> ProverScenario:
    scenario.open(retry_seconds=600)
    return scenario


def ask(
    scenario: ProverScenario, name: str, body: Any, more: dict[str, str], window: str = "w1"
) -> tuple[int, dict[str, str], bytes]:
    sent = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = scenario.api.post(
        f"/v1/windows/{window}/{name}", headers={**scenario.headers("ada"), **more}, **sent
    )
    return answer.status_code, dict(answer.headers), answer.content


def counted(skipped: list[str]) -> Callable[..., Any]:
    honest = Questions._answer

    async def answer(self: Questions, route: Any, *rest: Any) -> None:
        skipped.append(route.path)
        await honest(self, route, *rest)

    return answer


def test_each_answer_is_that_of_the_application(
    opened: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    skipped: list[str] = []
    monkeypatch.setattr(Questions, "_answer", counted(skipped))
    # Whose key is known is read when somebody comes with one that is not.
    opened.api.get("/v1/windows", headers=opened.headers("ada"))
    fast = {name: ask(opened, *each) for name, each in ODD.items()}
    fast["another window"] = ask(opened, "query", QUESTION, {}, window="w2")
    assert len(skipped) == len(fast) - 4  # packed, nobody's, none, and of another scheme
    monkeypatch.setattr(Questions, "_caller", lambda *_: None)
    slow = {name: ask(opened, *each) for name, each in ODD.items()}
    slow["another window"] = ask(opened, "query", QUESTION, {}, window="w2")
    assert len(skipped) == len(fast) - 4
    for name, answer in fast.items():
        assert answer == slow[name], name
    assert [fast[name][0] for name in ("a question", "a K too large", "another window")] == [
        200, 400, 404,
    ]  # fmt: skip


def test_who_does_not_pass_the_gate_is_told_so(
    opened: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: Any) -> None:
        raise TooManyRequests("too many requests a second", expected="100")

    monkeypatch.setattr("ragaudit.prover.http.questions.PENALTY_SECONDS", 0)
    monkeypatch.setattr(Gate, "turn", closed)
    status, headers, content = ask(opened, "query", QUESTION, {})
    assert status == 429 and headers["retry-after"] == "1" and b"requests a second" in content


def test_a_body_beyond_the_limit_of_the_settings_is_refused(
    make_scenario: Callable[..., ProverScenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGAUDIT_PROVER__SERVER__MAX_BODY_BYTES", "1024")
    scenario = make_scenario()
    scenario.api.get("/v1/windows", headers=scenario.headers("ada"))
    status, _, content = ask(scenario, "query", b" " * 1025, JSON)
    assert status == 413 and b"at most 1024 bytes" in content


def test_a_fault_of_ours_is_no_traceback(
    opened: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(opened.service.asking, "query", fails)
    status, _, content = ask(opened, "query", QUESTION, {})
    assert status == 500 and b"it has been logged" in content and b"secret" not in content
