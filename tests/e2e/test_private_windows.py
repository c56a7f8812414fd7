"""A window with noise, filters and versions, with all services and the client library."""

import json
from pathlib import Path
from typing import Any

import pytest
from ragaudit.lab.scenario.integrity import LEFT_SHELF, RECENT
from ragaudit.lab.scenario.policy import COLUMNS
from ragaudit.lab.scenario.scenario import COPIED, Scenario, vector_near
from ragaudit.lab.scenario.services import SETTINGS, WINDOW, Offer, shelved_documents
from ragaudit.ledger.messages.verdict import Claims
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.service import Components
from ragaudit.prover.settings import WindowSettings
from ragaudit.verifier.procedure import Status

pytestmark = pytest.mark.slow

NOISED = WindowSettings(
    privacy="gaussian",
    public_columns={each.name: each.type for each in COLUMNS},
    filters=True,
    query_kinds=("text", "vector"),
    versions=True,
    **SETTINGS.model_dump(exclude_unset=True),
)


class Noised(Scenario):
    """An anchored account and plain ones filter and bring vectors, and the indexes change."""

    offer = Offer(NOISED, shelved_documents)

    def before_second(self, at: int) -> None:
        self.clock.at(at + 1)
        self.accounts["alice"].ask("the first question of alice", 3, LEFT_SHELF)
        self.clock.at(at + 2)
        self.ask("bob", COPIED, 2)
        self.accounts["carol"].ask("the first question of carol", 3, RECENT)
        self.prover.checkpoint()
        self.clock.at(at + 5)
        for tenant in ("acme", "beta"):
            self.leave_out(tenant, 6)
            assert self.prover.service.refresher.refresh(WINDOW, tenant) == 2
        # dora is shown a version that nothing activates yet; the others have not seen one.
        self._register("dora")
        self.prover.checkpoint()
        self.clock.at(at + 20)
        self.accounts["alice"].ask(vector_near("document 5 of acme"), 2, RECENT)
        self.accounts["bob"].ask(vector_near("document 7 of acme"), 3)

    def leave_out(self, tenant: str, position: int) -> None:
        """Delete a document, and add one."""
        documents = [
            each for each in shelved_documents(tenant, 21) if each.id != f"{tenant}-{position}"
        ]
        StoredDocuments(self.prover.service.store).add(tenant, documents, replace=True)


def test_filters_vectors_and_versions_under_noise(tmp_path: Path) -> None:
    played = Noised(tmp_path, Components())
    conclusion = played.run()
    assert conclusion.complaints == ()
    outcome = conclusion.outcome
    assert [c for c in outcome.checks if c.status != Status.PASS] == []
    assert outcome.result == "PASS"
    assert outcome.counts["records"] == outcome.counts["receipts"] == 8
    assert outcome.claims == Claims("PASS", "PASS")
    receipts = {name: account.receipts for name, account in played.accounts.items()}
    # All ten checks of every receipt were made by its account; nothing is left open.
    for account in receipts.values():
        for receipt in account:
            assert {step.status for step in receipt.checks} == {"done"}
    shelves = [columns["shelf"] for columns in columns_of(receipts["alice"][0])]
    assert shelves and set(shelves) == {"left"}
    for receipt in (receipts["carol"][0], receipts["alice"][1]):
        for columns in columns_of(receipt):
            assert columns["year"] >= 2006 and columns["shelf"] != "left"
    versions = {name: [r.file.public.query.version for r in receipts[name]] for name in receipts}
    assert versions == {"alice": [1, 1, 2], "bob": [1, 1], "carol": [1, 2], "dora": [2]}
    for account in receipts.values():
        for receipt in account:
            # No score leaves where noise protects them; positions rise, in no order of score.
            assert all(document.score is None for document in receipt.file.answer.documents)
            served = [document.position for document in receipt.file.answer.documents]
            gone = [row.position for row in receipt.file.private.withdrawn]
            assert sorted(served + gone) == list(receipt.file.private.selected)


def columns_of(receipt: Any) -> list[dict[str, Any]]:
    """The public columns of what a receipt served."""
    return [json.loads(document.columns) for document in receipt.file.answer.documents]
