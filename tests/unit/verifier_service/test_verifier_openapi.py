"""Requests made from the service's own description: nothing answers with a fault of ours."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from recording_auditor import RecordingAuditor
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.transport import Response as AnyResponse
from verifier_service_harness import (
    END,
    SAMPLING,
    START,
    WINDOW,
    Story,
    VerifierScenario,
)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with VerifierScenario(
        tmp_path_factory.mktemp("verifier"), RecordingAuditor()
    ).running() as running:
        running.open_window()
        Story(running).cosign()
        yield running


OPERATIONS = 49


@pytest.fixture(scope="module")
def operations(scenario: Any) -> Any:
    """Reading the description takes longer than all requests made from one of its operations."""
    schema = schemathesis.openapi.from_dict(scenario.client.app.openapi())
    found = [each.ok() for each in schema.get_all_operations()]  # type: ignore[union-attr]
    return sorted(found, key=lambda each: (each.path, each.method))


def test_the_description_is_whole(operations: Any) -> None:
    found = {(each.method.upper(), each.path) for each in operations}
    base = "/v1/windows/{window}"
    assert len(found) == OPERATIONS
    assert found == {
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/v1/keys"),
        ("GET", "/v1/terms"),
        ("POST", "/v1/windows"),
        ("PUT", base + "/tenants/{tenant}/versions/1"),
        ("PUT", base + "/tenants/{tenant}/versions/{version}"),
        ("POST", base + "/countersign"),
        ("POST", base + "/entries"),
        ("POST", "/cosigner/add-checkpoint"),
        ("GET", "/cosigner/{origin_hash}/checkpoint"),
        ("GET", base + "/activations/{a}"),
        ("POST", base + "/rounds"),
        ("POST", base + "/receipts"),
        ("POST", base + "/refusals"),
        ("POST", base + "/claims"),
        ("GET", base + "/claims"),
        ("GET", base + "/claims/{pseudonym}/{counter}"),
        ("POST", base + "/disputes"),
        ("GET", base + "/disputes/{index}"),
        ("PUT", base + "/disputes/{index}/file"),
        ("POST", base + "/findings"),
        ("POST", base + "/statements"),
        ("POST", base + "/cosigned"),
        ("POST", base + "/time-stamps"),
        ("PUT", base + "/records"),
        ("POST", base + "/records"),
        ("GET", base + "/records/parts"),
        ("PUT", base + "/records/parts/{part}"),
        ("POST", base + "/close"),
        ("PUT", base + "/test-results/{name}"),
        ("GET", base + "/test-results"),
        ("GET", base + "/challenge"),
        ("PUT", base + "/challenge/{index}"),
        ("PUT", base + "/challenge/budgets/{tenant}"),
        ("PUT", base + "/challenge/replays/{index}"),
        ("PUT", base + "/challenge/rows/{tenant}"),
        ("POST", base + "/audit"),
        ("GET", base),
        ("GET", base + "/progress"),
        ("GET", base + "/verdict"),
        ("GET", base + "/report.html"),
        ("GET", base + "/report.txt"),
        ("GET", base + "/bundle"),
        ("POST", base + "/bundle/confidential"),
        ("GET", base + "/bundle/confidential/{number}"),
        ("POST", base + "/accounts/{pseudonym}"),
        ("GET", base + "/accesses"),
        ("GET", base + "/deletion"),
    }


def test_who_may_call_is_described(scenario: Any) -> None:
    """Every route that answers 401 says which scheme it wants, and no other does."""
    schema = scenario.client.app.openapi()
    assert set(schema["components"]["securitySchemes"]) == {"provider", "auditor"}
    wanted: dict[str, Any] = {}
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            schemes = {name for each in route.get("security", []) for name in each}
            assert bool(schemes) == ("401" in route["responses"]), (method, path)
            for name in schemes:
                wanted.setdefault(name, set()).add((method.upper(), path.rpartition("/")[2]))
    assert wanted["auditor"] == {
        ("POST", "audit"), ("POST", "confidential"), ("POST", "{pseudonym}"), ("GET", "accesses"),
        ("GET", "{number}"), ("PUT", "{name}"), ("GET", "test-results"),
    }  # fmt: skip
    assert wanted["provider"] == {
        ("POST", "windows"), ("PUT", "1"), ("POST", "countersign"), ("GET", "claims"),
        ("POST", "entries"), ("PUT", "records"), ("POST", "close"), ("GET", "challenge"),
        ("PUT", "{index}"), ("GET", "{counter}"), ("PUT", "{version}"), ("POST", "cosigned"),
        ("POST", "time-stamps"), ("POST", "records"), ("GET", "parts"), ("PUT", "{part}"),
        ("POST", "rounds"), ("PUT", "{tenant}"),
    }  # fmt: skip


def body_of(case: Any) -> bytes:
    if isinstance(case.body, bytes):
        return case.body
    if isinstance(case.body, str):
        return case.body.encode("utf-8", "surrogatepass")
    try:
        return json.dumps(case.body).encode()
    except (TypeError, ValueError):
        return b""


def send(scenario: Any, case: Any, *, real_window: bool, sign: bool) -> Any:
    """The case as a request; its window is the open one, and it is signed, where asked for."""
    if real_window and "window" in case.path_parameters:
        case.path_parameters["window"] = WINDOW
    target = scenario.client.build_request(case.method, case.formatted_path).url
    body = body_of(case)
    headers = scenario.headers(case.method.upper(), target.raw_path.decode(), body) if sign else {}
    return scenario.client.request(case.method, target, content=body, headers=headers)


# Times in rising order, as the service's clock does not go back.
CASES = [(time, number) for time in (START, END, SAMPLING) for number in range(OPERATIONS)]


@pytest.mark.parametrize(("time", "number"), CASES)
def test_no_request_is_a_fault_of_ours(
    scenario: Any, operations: Any, time: Any, number: Any
) -> None:
    operation = operations[number]
    scenario.clock.now = max(scenario.clock.now, 1000 * time)

    @settings(max_examples=6, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(), real=st.booleans(), sign=st.booleans())
    def fuzz(case: Any, real: Any, sign: Any) -> None:
        check(scenario, case, real_window=real, sign=sign)

    fuzz()


@pytest.mark.nightly
@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("number", range(OPERATIONS))
def test_many_requests(scenario: Any, operations: Any, mode: Any, number: Any) -> None:
    operation = operations[number]
    strategy = operation.as_strategy(generation_mode=mode)

    @settings(max_examples=100, suppress_health_check=list(HealthCheck), database=None)
    @given(case=strategy, real=st.booleans(), sign=st.booleans())
    def fuzz(case: Any, real: Any, sign: Any) -> None:
        check(scenario, case, real_window=real, sign=sign)

    try:
        fuzz()
    except Unsatisfiable:
        pytest.skip(f"nothing of {operation.path} can be generated in mode {mode.value}")


def check(scenario: Any, case: Any, *, real_window: bool, sign: bool) -> None:
    answer = send(scenario, case, real_window=real_window, sign=sign)
    assert answer.status_code < 500, answer.text
    case.validate_response(AnyResponse.from_any(answer), checks=[not_a_server_error])
    if answer.status_code >= 400 and "cosigner/add" not in case.path:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"].startswith("urn:ragaudit:problem:")
