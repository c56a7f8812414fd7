"""Request signatures of providers, and the auditor's token."""

import json
from typing import Any

import pytest
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import seeded
from ragaudit.verifier import keys
from ragaudit.verifier.service import providers
from verifier_service_harness import PROVIDER, WINDOW, problem_of

TARGET = "/v1/windows"


@pytest.fixture
def body(scenario: Any) -> bytes:
    return json.dumps({"policy": scenario.policy(), "embedder": {}}).encode()


def post(scenario: Any, body: Any, headers: Any, target: Any = TARGET) -> Any:
    return scenario.client.post(target, content=body, headers=headers)


def test_a_signed_request_passes_and_may_be_repeated(scenario: Any, body: Any) -> None:
    headers = scenario.headers("POST", TARGET, body)
    assert post(scenario, body, headers).status_code == 201
    scenario.clock.now += 60_000
    assert post(scenario, body, headers).status_code == 200


@pytest.mark.parametrize("drift", [-60_001, 60_001, 86_400_000])
def test_a_replay_outside_the_tolerance(scenario: Any, body: Any, drift: Any) -> None:
    headers = scenario.headers("POST", TARGET, body, time=scenario.clock.now + drift)
    problem_of(post(scenario, body, headers), 401, "not-authenticated")


@pytest.mark.parametrize("drift", [-60_000, 60_000])
def test_the_edge_of_the_tolerance(scenario: Any, body: Any, drift: Any) -> None:
    headers = scenario.headers("POST", TARGET, body, time=scenario.clock.now + drift)
    assert post(scenario, body, headers).status_code == 201


@pytest.mark.parametrize(
    ("method", "target"), [("PUT", TARGET), ("POST", TARGET + "?x=1"), ("POST", "/v1/window")]
)
def test_a_signature_of_another_request(scenario: Any, body: Any, method: Any, target: Any) -> None:
    headers = scenario.headers(method, target, body)
    problem_of(post(scenario, body, headers), 401, "not-authenticated")


def test_the_query_is_signed(scenario: Any, body: Any) -> None:
    headers = scenario.headers("POST", TARGET, body)
    problem_of(post(scenario, body, headers, TARGET + "?x=1"), 401, "not-authenticated")
    headers = scenario.headers("POST", TARGET + "?x=%20y", body)
    assert post(scenario, body, headers, TARGET + "?x=%20y").status_code == 201


def test_a_signature_of_another_body(scenario: Any, body: Any) -> None:
    headers = scenario.headers("POST", TARGET, body)
    problem_of(post(scenario, body + b" ", headers), 401, "not-authenticated")


def test_a_signature_of_another_time(scenario: Any, body: Any) -> None:
    headers = {
        **scenario.headers("POST", TARGET, body),
        "Ragaudit-Time": str(scenario.clock.now + 1),
    }
    problem_of(post(scenario, body, headers), 401, "not-authenticated")


def test_another_key(scenario: Any, body: Any) -> None:
    headers = scenario.headers("POST", TARGET, body, key=seeded("other"))
    problem_of(post(scenario, body, headers), 401, "not-authenticated")


def test_a_provider_that_is_not_pinned(scenario: Any, body: Any) -> None:
    headers = scenario.headers("POST", TARGET, body, provider="stranger")
    problem_of(post(scenario, body, headers), 401, "not-authenticated")


def test_a_removed_provider(scenario: Any, body: Any) -> None:
    providers.remove(scenario.service.database, PROVIDER)
    problem_of(
        post(scenario, body, scenario.headers("POST", TARGET, body)), 401, "not-authenticated"
    )


@pytest.mark.parametrize(
    "missing", ["Ragaudit-Provider", "Ragaudit-Time", "Ragaudit-Signature", "Content-Digest"]
)
def test_each_header_is_demanded_once(scenario: Any, body: Any, missing: Any) -> None:
    headers = scenario.headers("POST", TARGET, body)
    twice = [*headers.items(), (missing, headers[missing])]
    problem_of(post(scenario, body, twice), 401, "not-authenticated")
    del headers[missing]
    problem_of(post(scenario, body, headers), 401, "not-authenticated")


@pytest.mark.parametrize("time", ["", "x", "1.0", "+1", "01", "-1", "1_0", "9" * 40, "\u0661"])
def test_ill_formed_times(scenario: Any, body: Any, time: Any) -> None:
    headers = {**scenario.headers("POST", TARGET, body), "Ragaudit-Time": time.encode()}
    problem_of(post(scenario, body, headers), 401, "not-authenticated")


@pytest.mark.parametrize("signature", ["", "AAAA", "!", "A" * 86 + "B="])
def test_ill_formed_signatures(scenario: Any, body: Any, signature: Any) -> None:
    headers = {**scenario.headers("POST", TARGET, body), "Ragaudit-Signature": signature}
    problem_of(post(scenario, body, headers), 401, "not-authenticated")


@pytest.mark.parametrize(
    "digest",
    [
        "", "sha-256", "sha-256=::", "sha-256=:AAAA:", "md5=:{}:", "SHA-256=:{}:", "sha-256=:{}",
        "{}",
    ],
)  # fmt: skip
def test_ill_formed_digests(scenario: Any, body: Any, digest: Any) -> None:
    headers = scenario.headers("POST", TARGET, body)
    right = headers["Content-Digest"].split(":")[1]
    headers["Content-Digest"] = digest.format(right)
    problem_of(post(scenario, body, headers), 401, "not-authenticated")
    not_canonical = right[:-2] + chr(ord(right[-2]) + 1) + "="
    headers["Content-Digest"] = f"sha-256=:{not_canonical}:"
    problem_of(post(scenario, body, headers), 401, "not-authenticated")


def test_nothing_of_a_body_is_read_before_its_signature_holds(scenario: Any, body: Any) -> None:
    """Called as a server calls it, with a body that must not be asked for."""
    read: list[str] = []

    def answer(headers: dict[str, str]) -> int:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            read.append("a piece")
            return {"type": "http.request", "body": b"x" * 1000, "more_body": len(read) < 5}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
            "scheme": "http", "path": TARGET, "raw_path": TARGET.encode(), "query_string": b"",
            "root_path": "", "headers": raw, "client": ("127.0.0.1", 1), "server": ("x", 80),
        }  # fmt: skip
        scenario.client.portal.call(scenario.client.app, scope, receive, send)
        return int(sent[0]["status"])

    right = scenario.headers("POST", TARGET, body)
    for headers in (
        {},
        {**right, "Ragaudit-Provider": "stranger"},
        {**right, "Ragaudit-Time": "1"},
        {**right, "Content-Digest": "sha-256=:" + "A" * 43 + "=:"},
        scenario.headers("POST", TARGET, body, key=seeded("other")),
    ):
        assert answer(headers) == 401
    assert read == []
    assert answer(right) == 401  # the body is another one
    assert len(read) == 5


def test_no_headers_at_all(scenario: Any, body: Any) -> None:
    problem_of(post(scenario, body, {}), 401, "not-authenticated")


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer x", "Basic x", "Bearer  ", "bearer\t", "Bearer \xe9"]
)
def test_the_auditor_needs_the_token(scenario: Any, header: Any) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    opening = (("POST", "bundle/confidential"), ("POST", f"accounts/{'ab' * 32}"))
    reading = (("GET", "accesses"), ("GET", "bundle/confidential/0"))
    for method, path in (("POST", "audit"), *opening, *reading):
        answer = scenario.client.request(method, f"/v1/windows/{WINDOW}/{path}", headers=headers)
        problem_of(answer, 401, "not-authenticated")


def test_the_token_passes_and_a_provider_does_not(scenario: Any) -> None:
    token = keys.read_token(scenario.settings.secrets / keys.TOKEN)
    target = f"/v1/windows/{WINDOW}/audit"
    answer = scenario.client.post(target, headers={"Authorization": f"Bearer {token}"})
    problem_of(answer, 404, "not-found")
    problem_of(scenario.send("POST", target), 401, "not-authenticated")


def test_pinning(scenario: Any) -> None:
    database, key = scenario.service.database, PrivateKey.generate().public
    providers.add(database, "b", key)
    providers.add(database, "b", key)
    for name, other in (("b", seeded("x").public), ("c", key), ("Bad Name", seeded("x").public)):
        with pytest.raises(RagauditError):
            providers.add(database, name, other)
    with database.read() as connection:
        assert [each.name for each in providers.listed(connection)] == [PROVIDER, "b"]
    providers.remove(database, "b")
    with pytest.raises(RagauditError):
        providers.remove(database, "b")
