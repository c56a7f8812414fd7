"""What one provider may store before the verifier agreed to anything."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.tagged import enc
from ragaudit.lab.scenario.policy import seeded
from ragaudit.verifier.service import providers, windows
from ragaudit.verifier.settings import Limits
from verifier_service_harness import (
    ORIGIN,
    PROVIDER,
    START,
    WINDOW,
    Desk,
    RecordingAuditor,
    index_of,
    problem_of,
)

INDEX = "/v1/windows/{}/tenants/t1/versions/1"


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Any]:
    """A service that lets a provider have three windows waiting, five a day, and 20 kB."""
    desk = Desk(tmp_path, RecordingAuditor())
    limits = Limits(waiting_windows=3, windows_per_day=5, waiting_bytes=20_000, index_bytes=9_000)
    with desk.running(desk.settings.model_copy(update={"limits": limits})):
        yield desk


def register(desk: Desk, name: str, status: int = 201) -> Any:
    policy = desk.policy(window=name)
    policy["keys"] = {**policy["keys"], "log": policy["keys"]["log"].replace(WINDOW, name)}
    answer = desk.send("POST", "/v1/windows", {"policy": policy, "embedder": {}})
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
    with Desk(tmp_path, RecordingAuditor()).running() as desk:
        register(desk, "w1")
        problem_of(desk.send("PUT", INDEX.format("w1"), noise), 400, "malformed-record")
        with desk.service.database.read() as connection:
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
