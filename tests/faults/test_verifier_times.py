"""The verifier's system clock is set and set back, in every phase: nothing is attested, PASS."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prover_process import STEPPING, Setting, Steady
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.database import Database
from verifier_process import VerifierProcess, now

HOUR = 3_600_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Hands:
    """The verifier and the file that says how far its clock is off."""

    def __init__(self, folder: Path) -> None:
        self.offset = folder / "offset"
        self.set(0)
        self.process = VerifierProcess(folder, tick_seconds=0.2)
        self.process.prelude = STEPPING % str(self.offset)
        self.process.start()
        self.database = Database(self.process.settings.database_url, now)
        self.http = httpx.Client(base_url=self.process.url, timeout=30, trust_env=False)

    def set(self, milliseconds: int) -> None:
        """Never half of a number."""
        written = self.offset.with_suffix(".new")
        written.write_text(str(milliseconds))
        written.replace(self.offset)

    def window(self) -> dict[str, object]:
        shown: dict[str, object] = self.http.get("/v1/windows/w1").json()
        return shown

    def stored(self) -> object:
        """What the verifier remembers of the window."""
        with self.database.read() as connection:
            return windows.get(connection, windows.of("p.example", "w1"))

    def step(self, milliseconds: int) -> None:
        """Set the clock for some ticks, and set it back."""
        before = self.stored()
        self.set(milliseconds)
        assert self.http.get("/readyz").status_code == 503
        time.sleep(1)
        assert self.http.get("/readyz").status_code == 503
        assert self.stored() == before
        self.set(0)
        assert self.http.get("/readyz").status_code == 200


@pytest.fixture
def hands(tmp_path: Path) -> Iterator[Hands]:
    made = Hands(tmp_path)
    yield made
    made.http.close()
    made.database.close()
    made.process.stop()


@pytest.fixture
def setting(tmp_path: Path, hands: Hands) -> Iterator[Setting]:
    made = Setting(tmp_path, hands.process)
    yield made
    made.stop()


def test_a_clock_an_hour_off_for_a_second(setting: Setting, hands: Hands) -> None:
    setting.open(
        length_seconds=45, sampling_after_seconds=65, merge_delay_seconds=60, clock_skew_seconds=5
    )
    asking = Steady(setting, "ada")
    asking.start()
    for step in (HOUR, -HOUR):
        hands.step(step)
        time.sleep(1)
    asking.end()
    assert {each.status_code for each in asking.answers} == {200}  # nobody waits for the verifier
    setting.prover.wait_for(lambda: hands.window()["state"] == "closed", 120)
    hands.step(HOUR)  # past the sampling instant
    setting.prover.wait_for(lambda: hands.window()["state"] == "challenged", 120)
    hands.step(HOUR)  # past the deadline
    setting.prover.wait_for(lambda: hands.window()["result"] is not None, 300)
    assert hands.window()["result"] == "PASS"
    assert [
        each for each in hands.process.log.read_text().splitlines() if "Traceback" in each
    ] == []
