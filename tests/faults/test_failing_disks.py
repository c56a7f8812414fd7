"""A disk that is full, broken or read-only under the prover's and the verifier's stores.

What cannot be made durable is not answered; with the disk as it was, everything goes on, and the
audit passes.
"""

import errno
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from disk_trace import DiskTrace
from moved_window import MovedWindow
from prover_process import PLAIN, body_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CASES = (
    *(("prover", "prover.db", fault) for fault in (errno.ENOSPC, errno.EIO, errno.EROFS)),
    *(("prover", "fences", fault) for fault in (errno.ENOSPC, errno.EIO)),
    ("verifier", "data/verifier.db", errno.ENOSPC),
    ("verifier", "data/verifier.db", errno.EROFS),
    ("verifier", "data/verifier.fence", errno.EIO),
)
"""Whose disk fails, under which of its files, and what the system then says."""


class Failing(MovedWindow):
    """A window whose services write to a disk that fails where it is told to."""

    def __init__(self, folder: Path) -> None:
        self.site, scratch = folder / "site", folder / "scratch"
        for each in (self.site, scratch):
            each.mkdir()
        self.trace = DiskTrace(self.site, scratch)
        super().__init__(self.site)
        self.verifier.environment = self.prover.environment = self.trace.environment
        self.answered: list[dict[str, Any]] = []

    def ask(self, number: int) -> httpx.Response:
        """Ask; what is answered is kept, and whatever is refused is refused in our words."""
        answer = self.setting.post(PLAIN[number % 3], "query", body_of(number))
        if answer.status_code == 200:
            self.answered.append(answer.json()["public"])
        else:
            assert answer.status_code == 503, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert "Traceback" not in answer.text and "INSERT" not in answer.text
        return answer


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Failing]:
    with closing(Failing(tmp_path)) as made:
        yield made


def test_nothing_is_answered_that_no_disk_holds(failing: Failing) -> None:
    failing.begin()
    failing.clock.reach(failing.policy().start)
    failing.until(lambda: failing.prover.state() == "open")
    number = 0
    for party, place, fault in CASES:
        assert failing.ask(number).status_code == 200
        failing.trace.fail(fault, failing.site / party / place)
        during = [failing.ask(number + more).status_code for more in range(1, 4)]
        if party == "prover":
            assert set(during) == {503}, (place, fault)
            assert failing.setting.prover.http.get("/readyz").status_code == 503
        else:
            assert set(during) == {200}  # nobody waits for the verifier
            held = failing.cosigned()
            time.sleep(1)
            assert failing.cosigned() == held  # and nothing is cosigned
        failing.trace.fail(0, failing.site)
        if party == "verifier" and place.endswith("fence"):
            # A fence whose write failed is opened again by a start only.
            failing.verifier.kill()
            failing.verifier.start()
        number += 4
        assert failing.setting.prover.http.get("/readyz").status_code == 200
        failing.setting.prover.wait_for(lambda n=number: failing.ask(n).is_success)
        number += 1
        failing.setting.prover.wait_for(lambda: failing.cosigned() > failing.answered[-1]["index"])
    failing.finish()
    result, report = failing.shown().json()["result"], failing.shown("/report.txt").text
    failing.close()
    assert result == "PASS", report
    failing.check(failing.answered)
