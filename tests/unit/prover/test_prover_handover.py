"""The handover of a log in parts: broken off, gone on with, and begun again."""

import io
from dataclasses import replace
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from ragaudit.ledger.messages.handover import read_handover, write_handover
from ragaudit.prover.errors import VerifierRefused, VerifierUnreachable
from ragaudit.prover.lifecycle import closing
from ragaudit.prover.store.states import State
from ragaudit.prover.verifier.client import VerifierClient
from ragaudit.prover.window.records import entries
from ragaudit.verifier.service import handover

pytestmark = ON_EACH_ENGINE

PART = 2


@pytest.fixture
def ended(scenario: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A window of several parts that is over, and not handed over."""
    for module in (closing, handover):
        monkeypatch.setattr(module, "PART_ENTRIES", PART)
    scenario.open()
    for _ in range(4):
        assert scenario.ask("ada").status_code == 200
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().end)
    scenario.drive(State.CLOSED)
    return scenario


def hand_over(scenario: Any) -> None:
    scenario.service.driver.step("w1")
    assert scenario.service.windows.get("w1").handed_over


def test_a_handover_goes_on_where_it_was_broken_off(
    ended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, send = [], VerifierClient.put_part

    def put_part(client: VerifierClient, window: str, number: int, data: bytes) -> None:
        if number == 2 and 2 not in sent:
            sent.append(2)
            raise VerifierUnreachable("broken off", where="records")
        sent.append(number)
        send(client, window, number, data)

    monkeypatch.setattr(VerifierClient, "put_part", put_part)
    with pytest.raises(VerifierUnreachable, match="broken off"):
        hand_over(ended)
    # Another process, of which nothing is known but what database and verifier hold.
    ended.restart()
    hand_over(ended)
    with ended.service.store.read() as connection:
        logged = len(list(entries(connection, "w1")))
    last = (logged - 1) // PART
    assert last > 2
    assert sent == [0, 1, 2, *range(2, last + 1)]


def test_what_the_verifier_holds_of_another_log_is_begun_again(ended: Any) -> None:
    service = ended.service
    live = service.open_windows.get("w1")
    with service.store.read() as connection:
        first = list(entries(connection, "w1", 0, PART))
    other = [replace(first[0], salt=bytes(32)), *first[1:]]
    service.driver._verifier.put_part("w1", 0, write_handover(other))
    with pytest.raises(VerifierRefused, match="another digest"):
        hand_over(ended)
    hand_over(ended)
    closer = service.driver._closing
    parts = b"".join(closer.handover(live, number) for number in range(9))
    read = list(read_handover(io.BytesIO(parts)))
    assert [entry.index for entry in read] == list(range(len(read)))
    assert all((entry.kind == "record") == bool(entry.sketch) for entry in read)
