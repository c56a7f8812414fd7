"""The handover in parts: what is kept, what goes on after an interruption, what is refused."""

import hashlib
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from ragaudit.verifier.service import handover, windows
from verifier_service_harness import END, ORIGIN, problem_of

pytestmark = ON_EACH_ENGINE

PARTS = "records/parts"


@pytest.fixture
def ended(story: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A window after its end; a part has two entries."""
    monkeypatch.setattr(handover, "PART_ENTRIES", 2)
    story.cosign()
    story.scenario.clock.at(END)
    return story


def parts_of(story: Any) -> list[bytes]:
    frames = [each.frame(i) for i, each in enumerate(story.entries)]
    return [b"".join(frames[at : at + 2]) for at in range(0, len(frames), 2)]


def put(story: Any, number: int, data: bytes) -> Any:
    return story.send("PUT", f"{PARTS}/{number}", data)


def take(story: Any, count: int, data: bytes) -> Any:
    body = {"parts": count, "digest": hashlib.sha256(data).hexdigest()}
    return story.send("POST", "records", body)


def held(story: Any) -> tuple[int, bool]:
    answer = story.send("GET", PARTS).json()
    return answer["parts"], answer["complete"]


def items(story: Any, prefix: str) -> int:
    with story.scenario.service.database.read() as connection:
        return len(windows.list_items(connection, ORIGIN, prefix))


def test_parts_are_the_handover(ended: Any) -> None:
    parts, whole = parts_of(ended), ended.handover()
    assert b"".join(parts) == whole
    for number, data in enumerate(parts):
        assert held(ended) == (number, False)
        assert put(ended, number, data).status_code == 204
        assert put(ended, number, data).status_code == 204
    assert take(ended, len(parts), whole).status_code == 204
    with ended.scenario.service.database.read() as connection:
        assert windows.read_item(connection, ORIGIN, "confidential/records.bin") == whole
    # Nothing is kept twice, and both ways of handing over are the same one.
    assert items(ended, "handover/") == 0
    assert held(ended) == (0, True)
    assert take(ended, len(parts), whole).status_code == 204
    assert ended.send("PUT", "records", whole).status_code == 204
    problem_of(take(ended, 1, parts[0]), 409, "conflict")
    problem_of(put(ended, 0, parts[0]), 409, "conflict")


def test_parts_come_in_order_and_once(ended: Any) -> None:
    first, second, *_ = parts_of(ended)
    problem_of(put(ended, 1, second), 409, "conflict")
    assert put(ended, 0, first).status_code == 204
    frames = [each.frame(i) for i, each in enumerate(ended.entries)]
    problem_of(put(ended, 0, frames[0]), 409, "conflict")
    problem_of(take(ended, 2, first + second), 409, "conflict")
    assert held(ended) == (1, False)


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        (lambda f: f[2] + f[3][:-1], "handover entry 3"),
        (lambda f: f[3] + f[2], "handover entry 2"),
        (lambda f: f[2] + f[2], "handover entry 3"),
        (lambda f: f[0] + f[1], "handover entry 2"),
        (lambda f: f[2] + f[3] + f[4], "part 1"),
        (lambda f: f[2] + (2**40).to_bytes(8, "little") + b"x", "handover entry 3"),
        (lambda f: f[2] + bytes(8), "handover entry 3"),
    ],
    ids=["cut", "swapped", "twice", "another part", "too many", "flood", "no frame"],
)
def test_a_spoilt_part_is_named(ended: Any, spoil: Any, where: str) -> None:
    frames = [each.frame(i) for i, each in enumerate(ended.entries)]
    assert put(ended, 0, frames[0] + frames[1]).status_code == 204
    answer = put(ended, 1, spoil(frames))
    assert (answer.status_code, answer.json()["where"]) == (400, where)
    assert held(ended) == (1, False)


def test_parts_that_are_refused_are_forgotten(ended: Any) -> None:
    parts, whole = parts_of(ended), ended.handover()
    for number, data in enumerate(parts):
        put(ended, number, data)
    problem_of(take(ended, len(parts), whole + b"x"), 422, "rejected")
    assert held(ended) == (0, False)
    # The entries given before must be in it, as in a handover that comes whole.
    ended.send("POST", "entries", {"entries": ended.documents()})
    put(ended, 0, parts[0])
    problem_of(take(ended, 1, parts[0]), 422, "rejected")
    assert held(ended) == (0, False)


def test_parts_have_no_more_entries_or_bytes_than_the_log(
    ended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = parts_of(ended)
    assert put(ended, 0, first).status_code == 204
    service = ended.scenario.service.handover
    monkeypatch.setattr(service, "most_entries", lambda _: 3)
    problem_of(put(ended, 1, second), 422, "rejected")
    monkeypatch.undo()
    monkeypatch.setattr(handover, "PART_ENTRIES", 2)
    monkeypatch.setattr(service, "records_bytes", lambda _: len(first) + len(second) - 1)
    problem_of(put(ended, 1, second), 429, "cap-reached")
    assert held(ended) == (1, False)


def test_nothing_is_taken_before_the_end(story: Any) -> None:
    story.cosign()
    problem_of(put(story, 0, story.handover()), 425, "too-early")
