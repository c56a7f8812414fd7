"""SIGKILL at every step of a deletion: the window is deleted whole, and stated once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from databases import ON_EACH_ENGINE
from dying import Mortal, Step
from finished_windows import Finished
from prover_process import Prover
from ragaudit.ledger.messages.custody import ProviderDeletion
from ragaudit.prover.command.set_up import SetUp
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.records import entries, records

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    *ON_EACH_ENGINE,
]

_RETENTION = "ragaudit.prover.lifecycle.retention:"
STEPS = (
    Step("it is signed", f"{_RETENTION}Retention._statement", "after"),
    Step("it is stated beside the fences", f"{_RETENTION}Retention._store", "before"),
    Step("it is stored", f"{_RETENTION}Retention._store", "after"),
    Step("half of the rows are gone", f"{_RETENTION}Retention._delete_some", "after", after=5),
    Step("all rows are gone", f"{_RETENTION}cut_journal", "before"),
)


@pytest.fixture
def prover(finished: Finished) -> Iterator[Prover]:
    """A process on the database of a finished window."""
    scenario = finished.scenario
    scenario.service.stop()
    folder, pins = scenario.folder / "prover", scenario.settings.verifier
    made = SetUp(
        folder / "prover.yaml", folder / "keys/operator.token", finished.retention.key.public
    )
    keys = {role: getattr(pins, f"{role}_key") for role in ("cosigner", "verifier", "verdict")}
    found = Prover(made, {**keys, "arbiter": pins.arbiter_key} if pins.arbiter_key else keys)
    found.fork()
    found.start()
    yield found
    found.http.close()
    if found.forks is not None:
        found.forks.close()


def test_killed_at_each_step_of_a_deletion(finished: Finished, prover: Prover) -> None:
    file: Path = finished.scenario.settings.store.fence_folder / "w1.deletion"
    mortal = Mortal(prover, STEPS)
    mortal.start()
    prover.kill()
    stated: set[bytes] = set()

    def deleted() -> bool:
        mortal.check()
        answer = prover.http.post(
            "/v1/operator/windows/w1/delete", headers=finished.scenario.operator
        )
        if file.exists():
            stated.add(file.read_bytes())
        return bool(answer.is_success and answer.json()["deleted"]["done"])

    try:
        prover.wait_for(deleted, 600)
        shown = prover.http.get("/v1/windows/w1/deletion")
        kept = prover.http.get(
            f"/v1/receipts/{finished.receipt}", headers=finished.scenario.headers("ada")
        )
    finally:
        mortal.end()
    assert mortal.died == [step.name for step in STEPS]
    assert stated == {shown.content}
    assert kept.status_code == 404
    store = Store.open(finished.scenario.settings.store.url)
    with store.read() as connection:
        assert not list(records(connection, "w1"))
        left = len(list(entries(connection, "w1")))
    store.close()
    statement = ProviderDeletion.parse(shown.content)
    assert statement.checkpoint is not None
    assert statement.entries == statement.checkpoint.size - left
