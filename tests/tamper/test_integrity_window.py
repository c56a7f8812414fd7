"""The honest window without noise that the cheats of its families depart from."""

from __future__ import annotations

from functools import lru_cache

import pytest
from cheating import UNCLAIMED
from ragaudit.circuits.selection import scores, select
from ragaudit.lab.scenario.integrity import COPIED, IntegrityWindow
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import Outcome, Status, run


@lru_cache(maxsize=1)
def played() -> tuple[IntegrityWindow, Evidence]:
    window = IntegrityWindow()
    return window, window.evidence()


def judged(name: str) -> Outcome:
    window, evidence = played()
    return run(evidence, engine=engine(name), pins=window.pins, embedder=window.embedder)


@pytest.mark.parametrize("name", ["core", pytest.param("reference", marks=pytest.mark.slow)])
def test_it_passes_and_claims_integrity_alone(name: str) -> None:
    outcome = judged(name)
    assert outcome.result == "PASS"
    status = {check.id: check.status for check in outcome.checks}
    assert {each for each, found in status.items() if found is Status.NOT_APPLICABLE} == {
        *UNCLAIMED
    }
    assert {found for each, found in status.items() if each not in UNCLAIMED} == {Status.PASS}
    assert outcome.counts["versions"] == 1
    assert outcome.counts["null_rows"] == 1
    [commitments] = [check for check in outcome.checks if check.id == "commitments"]
    assert commitments.evidence == ("version 2 of acme marks 1 rows as deleted",)


def test_every_answer_is_the_first_k_of_the_exact_search() -> None:
    window, _ = played()
    for asked in window.asked:
        index = window.index_of(asked)
        assert index.tenant == asked.account.tenant
        exact = scores(index.vectors, asked.embedding)
        allowed = window.allowed(asked.record, asked.openings.filter)
        assert asked.selected == select(exact, asked.record.top_k, allowed, keep_ties=True)
        ranked = sorted(asked.selected, key=lambda i: (-int(exact[i]), i))
        answered = [i for i in ranked[: asked.record.top_k] if i not in asked.withdrawn]
        assert list(asked.served) == answered


def test_everything_that_such_a_window_may_have_happens() -> None:
    window, _ = played()
    assert [asked for asked in window.asked if asked.openings.filter]
    assert [asked for asked in window.asked if asked.openings.vector]
    assert [asked for asked in window.asked if asked.withdrawn]
    assert [asked for asked in window.asked if asked.record.version == 2]
    tied = [asked for asked in window.asked if len(asked.selected) > asked.record.top_k]
    assert [asked.selected for asked in tied] == [COPIED]


def test_receipts_are_read_as_they_are_written() -> None:
    window, _ = played()
    for asked in window.asked:
        file = window.receipt_file(asked)
        assert ReceiptFile.parse(file.encode()) == file
        assert (file.private.ties is None) == (len(asked.selected) <= asked.record.top_k)
