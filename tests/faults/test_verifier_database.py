"""The verifier's PostgreSQL dies and comes back while it cosigns, is handed a log, and audits."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import postgresql_server
import pytest
from asking import Asking
from databases import verifier_tables
from moved_window import MovedWindow
from prover_process import ANCHORED, PLAIN

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

AWAY = 1.0  # seconds


@pytest.fixture
def scene(
    tmp_path: Path, make_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[MovedWindow]:
    url = make_database("postgresql", verifier_tables)
    monkeypatch.setenv("RAGAUDIT_VERIFIER__DATABASE", url)
    with closing(MovedWindow(tmp_path)) as made:
        yield made


def test_a_server_that_dies_loses_nothing_that_was_attested(
    scene: MovedWindow, postgresql: postgresql_server.Server
) -> None:
    def die() -> None:
        postgresql.crash()
        time.sleep(AWAY)
        postgresql.start()

    def covers(size: int) -> bool:
        return scene.cosigned() > size

    assert scene.verifier.settings.database_url.startswith("postgresql")
    scene.begin()
    policy = scene.policy()
    scene.clock.reach(policy.start)
    scene.until(lambda: scene.prover.state() == "open")
    asking = [Asking(scene.setting, account) for account in (*PLAIN, ANCHORED)]
    for each in asking:
        each.start()
    for _ in range(2):
        before = scene.cosigned()
        die()
        scene.until(partial(covers, before))
    for each in asking:
        each.end()
        each.check()
    answered = [public for each in asking for public in each.public]
    scene.until(lambda: scene.cosigned() > max(each["index"] for each in answered))

    scene.clock.reach(policy.end)
    die()
    scene.until(lambda: scene.window().handed_over)
    scene.clock.reach(policy.sampling_instant)
    die()
    scene.until(lambda: scene.prover.state() == "challenged")
    scene.clock.reach(policy.release_time // 1000 + 1)
    die()
    scene.until(lambda: scene.prover.state() == "archived")

    report, result = scene.shown("/report.txt").text, scene.shown().json()["result"]
    scene.close()
    assert result == "PASS", report
    scene.check(answered)
