"""What a deletion leaves in files: nothing in the database's, and a word that backups meet."""

from pathlib import Path
from typing import Any

import pytest
from finished_windows import QUESTION, Finished
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, NotFound, RejectedError
from ragaudit.encoding.signing import PrivateKey, SignatureRejected
from ragaudit.ledger.log.database import cut_journal
from ragaudit.ledger.messages.custody import ProviderDeletion
from ragaudit.prover.errors import WindowUnusable
from ragaudit.prover.store.states import State
from ragaudit.verifier.command.cli import app
from ragaudit.verifier.later_statements import Judged
from scenario import ProverScenario
from typer.testing import CliRunner


def test_no_byte_of_a_question_stays_in_the_file(finished: Finished) -> None:
    text = QUESTION.encode()
    cut_journal(finished.scenario.service.store.engine)
    assert text in finished.database.read_bytes()
    finished.delete()
    files = [*finished.database.parent.glob(f"{finished.database.name}*")]
    assert not [file for file in files if text in file.read_bytes()]


@pytest.mark.parametrize("when", ["open", "archived"])
def test_a_backup_that_comes_back_is_deleted_again(scenario: ProverScenario, when: str) -> None:
    found = Finished(scenario)
    found.back_up("open")
    found.archive()
    found.back_up("archived")
    found.delete()
    statement = found.statement()
    found.restore(when)
    assert found.rows()["records"] == 2
    # At the start, before any window is loaded and anything is given.
    found.retention.recall()
    assert scenario.state() is State.ARCHIVED
    with pytest.raises(NotFound, match="deleted at"):
        scenario.service.asking.receipt(scenario.account("ada"), found.receipt)
    found.retention.step()
    assert set(found.rows().values()) == {0}
    assert found.statement() == statement


def test_one_that_lost_the_end_of_its_log_names_no_checkpoint(
    scenario: ProverScenario, tmp_path: Path
) -> None:
    """The verifier has its final checkpoint all the same, and judged it."""
    found = Finished(scenario)
    found.back_up("open")
    found.archive()
    found.restore("open")
    with pytest.raises(WindowUnusable, match="behind the fence"):
        scenario.service.driver.step("w1")
    window = scenario.service.windows.get("w1")
    assert window.unusable is not None and window.final_checkpoint is None
    found.delete()
    stated = ProviderDeletion.parse(found.statement())
    assert stated.checkpoint is None and stated.entries == 2
    key = scenario.service.verifier.keys().verdict
    judged = Judged.read(found.bundle(tmp_path), key)
    assert judged.final is not None and judged.verdict.result == "PASS"
    judged.verify_deletion(stated)
    statement = tmp_path / "deletion.json"
    statement.write_bytes(found.statement())
    words = [str(statement), str(tmp_path / "bundle.zip"), "--verdict-key", key.raw.hex()]
    done = CliRunner().invoke(app, ["evidence", "verify-deletion", *words])
    assert done.exit_code == 0 and "is its word alone" in done.output, done.output


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("malformed", MalformedError),
        ("another key's", SignatureRejected),
        ("another window's", RejectedError),
    ],
)
def test_a_false_statement_deletes_nothing(
    scenario: ProverScenario, what: str, error: type[Exception]
) -> None:
    scenario.create()
    fences, own = scenario.folder / "prover/fences", scenario.service.retention.key
    fences.mkdir(exist_ok=True)
    made = ProviderDeletion(
        origin="p.example/ragaudit/w2", verdict=None, entries=0, checkpoint=None, time=1,
    ).signed(PrivateKey.generate() if what == "another key's" else own)  # fmt: skip
    (fences / "w1.deletion").write_bytes(b"{}" if what == "malformed" else made.encode())
    with pytest.raises(error, match=r"w1\.deletion beside the fences"):
        scenario.service.retention.recall()
    assert scenario.state() is State.DRAFT
    assert not scenario.service.retention._stated()


def test_whoever_has_the_public_bundle_checks_it(finished: Finished, tmp_path: Path) -> None:
    finished.delete()
    bundle, statement = finished.bundle(tmp_path), tmp_path / "deletion.json"
    statement.write_bytes(finished.statement())
    key = finished.scenario.service.verifier.keys().verdict

    def run(*options: str) -> Any:
        words = [str(statement), str(bundle), "--verdict-key", key.raw.hex(), *options]
        return CliRunner().invoke(app, ["evidence", "verify-deletion", *words])

    done = run()
    assert done.exit_code == 0, done.output
    assert "of 2 entries too" in done.output
    stated = ProviderDeletion.parse(finished.statement())
    assert canonical_json.loads_any(run("--json").output.encode()) == stated.to_json()

    provider = finished.retention.key
    members: dict[str, Any] = {
        "verdict": stated.verdict,
        "checkpoint": stated.checkpoint,
        "time": stated.time,
    }
    fewer = ProviderDeletion(origin=stated.origin, entries=1, **members).signed(provider)
    with pytest.raises(RejectedError, match="another number of entries"):
        Judged.read(bundle, key).verify_deletion(fewer)
    statement.write_bytes(fewer.encode())
    assert run().exit_code == 1
