"""One dialect of errors: a status for each family, members and headers by one rule."""

import logging
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pytest
from fastapi import Depends, Query, Request
from fastapi.testclient import TestClient
from ragaudit.encoding import errors
from ragaudit.encoding.errors import RagauditError
from ragaudit.serving.application import application
from ragaudit.serving.bodies import json_object
from ragaudit.serving.problems import STATUSES, status_of

FAMILIES = {
    errors.MalformedRequest: 400, errors.MalformedSettings: 400, errors.InvalidArgumentError: 400,
    errors.NotAuthenticated: 401, errors.NotFound: 404, errors.MethodNotAllowed: 405,
    errors.Conflict: 409, errors.RefusedError: 409, errors.TooLarge: 413,
    errors.RejectedError: 422, errors.UnsupportedError: 422, errors.TooEarly: 425,
    errors.TooMany: 429, errors.InternalError: 500, errors.PeerRefused: 502,
    errors.UnavailableError: 503, errors.ClockStepped: 503,
}  # fmt: skip


class Signed(errors.Conflict):
    """A conflict that carries evidence, and answers as an outage."""

    retry_after = 16.2

    @property
    def family(self) -> type[RagauditError]:
        return errors.UnavailableError

    @property
    def extension(self) -> Mapping[str, object]:
        return {"refusal": {"signature": "00"}}


class Raising:
    """An application whose one route raises what it is told to."""

    def __init__(self) -> None:
        self.error: Exception = errors.NotFound("nothing")
        app = application("things")

        @app.get("/things/{name}")
        def thing(name: str, number: Annotated[int, Query(le=9)] = 0) -> None:
            raise self.error

        async def body(request: Request) -> Any:
            return json_object(await request.body())

        @app.post("/things")
        def store(value: Annotated[Any, Depends(body)]) -> Any:
            return value

        self.client = TestClient(app, raise_server_exceptions=False)

    def get(self, error: Exception, path: str = "/things/w1") -> Any:
        self.error = error
        return self.client.get(path)


@pytest.fixture
def app() -> Iterator[Raising]:
    yield Raising()


@pytest.mark.parametrize(("kind", "status"), FAMILIES.items())
def test_each_family_has_its_status(app: Raising, kind: type[RagauditError], status: int) -> None:
    answer = app.get(kind("what", where="place", expected="other"))
    assert answer.status_code == status == status_of(kind("what"))
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status and answer.json()["instance"] == "/things/w1"
    assert (answer.headers.get("www-authenticate") == "Bearer") == (status == 401)
    assert (answer.headers.get("retry-after") == "1") == (status in {425, 503})


def test_every_class_of_the_tree_has_a_status() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    for kind in (kind for kind in kinds if issubclass(kind, RagauditError)):
        assert kind is RagauditError or any(base in STATUSES for base in kind.__mro__)


def test_an_error_says_its_own_members_and_family(app: Raising) -> None:
    answer = app.get(Signed("again later"))
    assert answer.status_code == 503 and answer.headers["retry-after"] == "17"
    assert answer.json()["refusal"] == {"signature": "00"}
    assert answer.json()["type"] == "urn:ragaudit:problem:signed"


def test_foreign_errors_say_nothing(app: Raising, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        answer = app.get(ValueError("secret"))
    assert answer.status_code == 500 and answer.json()["type"] == "urn:ragaudit:problem:internal"
    assert "secret" not in answer.text + caplog.text
    assert "GET /things/{name}: ValueError at test_serving_problems.py:" in caplog.text


@pytest.mark.parametrize("kind", [errors.InternalError, errors.UnavailableError])
def test_faults_and_outages_are_logged_without_the_path(
    app: Raising, caplog: pytest.LogCaptureFixture, kind: type[RagauditError]
) -> None:
    with caplog.at_level(logging.WARNING):
        app.get(kind("the disk is full"))
        app.get(errors.NotFound("not logged"))
    assert caplog.text.count("the disk is full") == 1 and "not logged" not in caplog.text
    assert "w1" not in caplog.text


def test_parameters_are_malformed_requests(app: Raising) -> None:
    answer = app.get(errors.NotFound("nothing"), "/things/w1?number=10")
    assert answer.status_code == 400 and answer.json()["where"] == "query.number"
    assert answer.json()["type"] == "urn:ragaudit:problem:malformed-request"


def test_unknown_paths_and_methods_are_problems(app: Raising) -> None:
    lost, wrong = app.client.get("/nothing"), app.client.delete("/things/w1")
    assert (lost.status_code, lost.json()["type"]) == (404, "urn:ragaudit:problem:not-found")
    assert wrong.status_code == 405 and wrong.headers["allow"] == "GET"
    assert wrong.json()["type"] == "urn:ragaudit:problem:method-not-allowed"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"a": 1, "a": 1}', b'{"a": 1.5}', b'{"a": "\\ud800"}', b"\xff"]
)
def test_bodies_have_one_meaning(app: Raising, body: bytes) -> None:
    answer = app.client.post("/things", content=body)
    assert answer.status_code == 400 and answer.json()["where"].startswith("body")
    assert answer.json()["type"] == "urn:ragaudit:problem:malformed-request"
