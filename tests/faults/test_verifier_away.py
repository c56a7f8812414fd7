"""The verifier is away at activations, at the handover, at the draw and during the audit.

For minutes each time: nobody waits for it who need not, what it missed comes when it is back, the
audit passes, and the report says how late everything was.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from asking import Asking
from moved_window import MovedWindow
from prover_process import ANCHORED, PLAIN, body_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LATE = 700  # seconds: more than the merge delay


class Scene(MovedWindow):
    """A window whose verifier is killed, and started again much later."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asking = [Asking(self.setting, account) for account in (*PLAIN, ANCHORED)]

    def go(self, instant: int) -> None:
        """Have the verifier miss an instant, Unix seconds, and much of what follows."""
        self.verifier.kill()
        self.clock.reach(instant + LATE)

    def ask(self) -> None:
        """Every account asks once, and is answered."""
        for each in self.asking:
            each.ask()
            each.check()

    def covered(self) -> None:
        """Wait until a cosigned checkpoint covers every answer."""
        last = max(public["index"] for each in self.asking for public in each.public)
        self.until(lambda: self.cosigned() > last)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with closing(Scene(tmp_path)) as made:
        yield made


def test_what_a_verifier_missed_comes_when_it_is_back(scene: Scene) -> None:
    scene.begin()
    policy = scene.policy()
    scene.go(max(policy.start, policy.activation_instants[0]))
    refused = scene.setting.post(PLAIN[0], "query", body_of(0))
    assert refused.status_code == 409 and scene.prover.state() == "countersigned"
    scene.verifier.start()
    scene.until(lambda: scene.prover.state() == "open")
    scene.ask()
    scene.covered()

    scene.go(policy.activation_instants[1])
    scene.ask()
    scene.verifier.start()
    scene.covered()
    scene.until(lambda: len(scene.prover.http.get("/v1/windows/w1").json()["activations"]) == 2)

    scene.go(policy.end)
    scene.until(lambda: scene.prover.state() == "closed")
    assert not scene.window().handed_over
    scene.verifier.start()
    scene.until(lambda: scene.window().handed_over)

    scene.go(policy.sampling_instant)
    scene.verifier.start()
    scene.until(lambda: scene.prover.state() == "challenged")
    scene.go(scene.clock() // 1000)
    scene.verifier.start()
    scene.until(lambda: scene.prover.state() == "archived")

    report, result = scene.shown("/report.txt").text, scene.shown().json()["result"]
    scene.close()
    assert result == "PASS", report
    for late in (
        "activation 1 was released",
        "activation 2 was released",
        "the log was handed over",
        "the sample was drawn",
    ):
        assert f"{late}, 7" in " ".join(report.split()), report
    answered = [public for each in scene.asking for public in each.public]
    scene.check(answered)
