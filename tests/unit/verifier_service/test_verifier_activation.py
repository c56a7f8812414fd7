"""Activations: strict instants, covered sizes, the chain, and a clock that goes back."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.signing import verify
from ragaudit.ledger.messages.chains import verify_activation_preimage
from verifier_service_harness import INSTANTS, WINDOW, Desk, problem_of


@pytest.fixture
def opened(desk: Any) -> Any:
    desk.open_window()
    return desk


def ask(desk: Any, a: object) -> Any:
    return desk.client.get(f"/v1/windows/{WINDOW}/activations/{a}")


def cosign(desk: Any, old: int, size: int) -> None:
    while desk.log.tree.size < size:
        desk.log.tree.append(sha256(str(desk.log.tree.size).encode()).digest())
    assert desk.add_checkpoint(desk.log.add_request(old, size)).status_code == 200


def test_before_the_instant(opened: Any) -> None:
    opened.clock.now = 1000 * INSTANTS[0] - 1
    answer = ask(opened, 1)
    problem_of(answer, 425, "too-early")
    assert answer.headers["retry-after"] == "1"
    opened.clock.now = 1000 * INSTANTS[0] - 90_500
    assert ask(opened, 1).headers["retry-after"] == "91"


def test_at_the_instant(opened: Any) -> None:
    anchor = bytes.fromhex(opened.countersign().json()["activation_anchor"])
    opened.clock.at(INSTANTS[0])
    message = ask(opened, 1).json()
    preimage = bytes.fromhex(message["preimage"])
    verify_activation_preimage(WINDOW, anchor, 1, preimage)
    verify(
        opened.keys.statement.public,
        bytes.fromhex(message["signature"]),
        "activation",
        WINDOW,
        1,
        preimage,
        message["covered_size"],
        message["time"],
    )
    assert message["time"] == opened.clock.now
    problem_of(ask(opened, 2), 425, "too-early")


def test_the_answer_never_changes(opened: Any) -> None:
    opened.clock.at(INSTANTS[0])
    first = ask(opened, 1).content
    cosign(opened, 0, 3)
    opened.clock.at(INSTANTS[0] + 50)
    assert ask(opened, 1).content == first


def test_covered_size_counts_what_was_cosigned_strictly_before(opened: Any) -> None:
    opened.clock.now = 1000 * INSTANTS[0] - 1
    cosign(opened, 0, 2)
    opened.clock.at(INSTANTS[0])
    cosign(opened, 2, 5)
    assert ask(opened, 1).json()["covered_size"] == 2
    opened.clock.at(INSTANTS[1])
    cosign(opened, 5, 6)
    assert ask(opened, 2).json()["covered_size"] == 5


def test_nothing_cosigned_covers_nothing(opened: Any) -> None:
    opened.clock.at(INSTANTS[1])
    assert ask(opened, 1).json()["covered_size"] == 0


def test_the_sampling_nonce_is_no_activation(opened: Any) -> None:
    opened.clock.at(INSTANTS[-1] + 1000)
    problem_of(ask(opened, len(INSTANTS)), 404, "not-found")
    problem_of(ask(opened, 0), 404, "not-found")
    problem_of(ask(opened, -1), 404, "not-found")
    problem_of(ask(opened, "x"), 400, "malformed-request")
    problem_of(ask(opened, 10**30), 404, "not-found")


def test_no_activation_without_a_countersignature(desk: Any) -> None:
    desk.clock.at(INSTANTS[0])
    problem_of(ask(desk, 1), 404, "not-found")
    desk.register()
    problem_of(ask(desk, 1), 409, "conflict")


def test_once_released_nothing_is_cosigned_before_the_instant(opened: Any) -> None:
    """A clock set back must not let a checkpoint count as cosigned before t_a."""
    opened.clock.at(INSTANTS[0])
    assert ask(opened, 1).status_code == 200
    opened.clock.now = 1000 * INSTANTS[0] - 1
    opened.log.tree.append(b"x")
    problem_of(opened.add_checkpoint(opened.log.add_request(0)), 503, "clock-stepped")


def test_the_release_survives_a_restart(tmp_path: Path, auditor: Any) -> None:
    desk = Desk(tmp_path, auditor)
    with desk.running():
        desk.open_window()
        desk.clock.at(INSTANTS[0])
        first = ask(desk, 1).content
    again = Desk(tmp_path, auditor)
    again.clock.at(INSTANTS[0] + 5)
    with again.running():
        assert ask(again, 1).content == first
