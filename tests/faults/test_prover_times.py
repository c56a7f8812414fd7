"""Times of records under load, slow answers, slow cosigners and clocks that are set: PASS."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from databases import SERVER_AT_NIGHT
from prover_process import PATIENT, STEPPING, Setting, Steady, body_of, check_log
from ragaudit.ledger.messages.entries import Record
from ragaudit.verifier.service import cosigner
from restoring import BackUp

SKEW = 1
TIMES = {"length_seconds": 34, "merge_delay_seconds": 12, "sampling_after_seconds": 17}

# One account's answers take longer than the clocks may differ, in the midst of the work.
_SLOW = """
import time
from ragaudit.prover.answering.mechanism import Mechanism
honest = Mechanism.draw_noise
def slow(self, live, index, record, nonce):
    if record.slot == 0:
        time.sleep(%d)
    return honest(self, live, index, record, nonce)
Mechanism.draw_noise = slow
"""


def result(setting: Setting) -> Any:
    """What the verifier says in the end."""
    setting.prover.wait_for(lambda: setting.prover.state() == "archived", 400)
    shown = httpx.get(f"{setting.verifier.url}/v1/windows/w1", trust_env=False).json()
    return shown["result"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_answers_and_a_cosigner_slower_than_the_skew_pass(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting.prover.prelude = _SLOW % (3 * SKEW)
    setting.open(**TIMES, clock_skew_seconds=SKEW)
    honest, waits = cosigner.add_checkpoint, iter([3 * SKEW, 3 * SKEW])

    def slow(*arguments: Any, **options: Any) -> Any:
        time.sleep(next(waits, 0))
        return honest(*arguments, **options)

    monkeypatch.setattr(cosigner, "add_checkpoint", slow)
    other = Steady(setting, "bea")
    other.start()
    answers = [setting.post("ada", "query", body_of(n)) for n in range(3)]
    other.end()
    assert {each.status_code for each in [*answers, *other.answers]} == {200}
    assert next(waits, None) is None, "the cosigner was never slow"
    assert result(setting) == "PASS"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_clock_that_is_set_and_set_back_passes(setting: Setting, tmp_path: Path) -> None:
    offset = tmp_path / "offset"
    offset.write_text("0")
    setting.prover.prelude = STEPPING % str(offset)
    setting.open(**TIMES, clock_skew_seconds=5)
    asked(setting, 0)
    for step in (20_000, -20_000):
        offset.write_text(str(step))
        during = [setting.post("ada", "query", body_of(n)) for n in range(1, 4)]
        assert setting.prover.http.get("/readyz").status_code == 503, step
        time.sleep(2)
        offset.write_text("0")
        for each in during:
            assert each.status_code == 503 and each.headers["retry-after"], step
            assert each.json()["type"] == "urn:ragaudit:problem:clock-stepped", step
        asked(setting, 4)
    assert result(setting) == "PASS"


@pytest.mark.slow
def test_a_machine_that_starts_with_a_wrong_clock_stamps_nothing(
    setting: Setting, tmp_path: Path
) -> None:
    offset = tmp_path / "offset"
    offset.write_text("0")
    setting.prover.prelude = STEPPING % str(offset)
    setting.open(length_seconds=600, **PATIENT)

    def restart(milliseconds: int) -> None:
        setting.prover.kill()
        offset.write_text(str(milliseconds))
        setting.prover.start()

    def declined(number: int) -> None:
        answer = setting.post("ada", "query", body_of(number))
        assert answer.json()["type"] == "urn:ragaudit:problem:clock-stepped", answer.text
        assert setting.prover.http.get("/readyz").status_code == 503

    first = asked(setting, 0)
    restart(20_000)
    declined(1)
    offset.write_text("0")
    setting.prover.wait_for(lambda: setting.prover.http.get("/readyz").is_success, 10)
    second = asked(setting, 1)
    setting.verifier.stop()  # nobody to ask: a clock that was confirmed goes on
    restart(0)
    third = asked(setting, 2)
    setting.prover.kill()
    check_log(setting, [first, second, third])


@pytest.mark.slow
@pytest.mark.timeout(600)
@SERVER_AT_NIGHT
@pytest.mark.usefixtures("on_each_engine")
def test_a_database_restored_while_it_serves_gives_nothing_twice(setting: Setting) -> None:
    setting.open(length_seconds=600)
    before = [asked(setting, n) for n in range(3)]
    backup = BackUp(setting.settings.store.url)
    lost = [asked(setting, n) for n in range(3, 7)]
    backup.restore()
    answer = setting.post("ada", "query", body_of(7))
    assert answer.status_code == 503 and "behind the fence" in answer.json()["detail"]
    again = setting.post("bea", "query", body_of(8))
    assert again.status_code == 503 and again.json()["refusal"]["reason"] == "unavailable"
    assert setting.prover.http.get("/readyz").status_code == 503
    setting.prover.kill()
    setting.prover.start()
    assert setting.post("ada", "query", body_of(9)).status_code == 503
    setting.prover.kill()
    records = [Record.parse(bytes.fromhex(each["body"])) for each in [*before, *lost]]
    assert [each.counter for each in records] == list(range(7))
    check_log(setting, before)


def asked(setting: Setting, number: int) -> Any:
    answer = setting.post("ada", "query", body_of(number))
    assert answer.status_code == 200, answer.text
    return answer.json()["public"]
