"""Documents that change within a window without noise, with all services."""

from __future__ import annotations

from pathlib import Path

from cheating import UNCLAIMED, shown
from ragaudit.lab.scenario.exact import CHANGED, ChangingScenario
from ragaudit.lab.scenario.scenario import Prepared
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.prover.answering.query import Selected, Stages
from ragaudit.prover.service import Components
from ragaudit.prover.window.records import SelectedRow
from ragaudit.verifier.procedure import Status, covered


def files(scenario: ChangingScenario, account: str) -> list[ReceiptFile]:
    return [receipt.file for receipt in scenario.accounts[account].receipts]


def test_changes_are_withdrawn_and_then_taken_up(tmp_path: Path, prepared_exact: Prepared) -> None:
    scenario = ChangingScenario(tmp_path, Components(), prepared=prepared_exact, disputes=True)
    played = scenario.run()
    assert played.complaints == ()
    assert played.outcome.result == "PASS", shown(played.outcome)
    left = {c.id: c.status for c in played.outcome.checks if c.status != Status.PASS}
    assert left == dict.fromkeys(UNCLAIMED, Status.NOT_APPLICABLE)
    assert (played.outcome.counts["versions"], played.outcome.counts["null_rows"]) == (1, 1)
    *_, between, after = files(scenario, "bob")
    assert "acme-7" in {row.id for row in between.private.withdrawn}
    assert len(between.answer.documents) < 3
    # From the version's instant on, K documents come back, and the new text is found.
    assert not after.private.withdrawn and len(after.answer.documents) == 3
    assert after.answer.documents[0].content == CHANGED
    assert "acme-5" not in {document.id for document in after.answer.documents}


class WithholdsTheBest(Selected):
    """The nearest document is called withdrawn, although nobody changed it."""

    def documents(self) -> list[SelectedRow]:
        return super().documents()[1:]


def test_what_is_called_withdrawn_is_the_providers_word(
    tmp_path: Path, prepared_exact: Prepared
) -> None:
    """No check knows the store; the account holds it signed, and the version says it stands."""
    parts = Components(stages=Stages(selected=WithholdsTheBest))
    scenario = ChangingScenario(tmp_path, parts, prepared=prepared_exact, disputes=True)
    played = scenario.run()
    assert played.outcome.result == "PASS", shown(played.outcome)
    assert played.complaints == ()
    assert covered.WITHHELD in played.outcome.not_covered
    # With words: everybody reads how many rows the accounts did not get.
    stated = played.outcome.withheld
    records = played.outcome.counts["records"]
    assert stated is not None and stated["answers"] == records <= stated["rows"]
    by_account = {each["pseudonym"]: each["rows"] for each in stated["most"]}
    for name in scenario.accounts:
        for file in files(scenario, name):
            named = [row.id for row in file.private.withdrawn]
            assert named, "each answer says what it leaves out"
            assert len(named) + len(file.answer.documents) == file.request.top_k
            assert file.public.query.withheld == len(named)
            by_account[file.public.query.pseudonym.hex()] -= len(named)
    assert set(by_account.values()) == {0}
