"""Receipts of generated answers, submitted to the verifier: check 13, and what it lets pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from judged_windows import judged, outcome_of, said
from judged_windows import played as made_once
from procedure_cases import use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.cheats.generation_receipts import (
    AnswersBesideTheLog,
    ChargesAnotherQuestion,
    DisputedAnswers,
    LogsAnotherAnswer,
    TellsAnotherText,
    TellsTwoTexts,
)
from ragaudit.lab.scenario.generating import Charged, SubmittedAnswers
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.accounts import Line, read_lines
from ragaudit.ledger.messages.disputes import file_digest
from ragaudit.ledger.messages.entries import Charge, Generated, Record, Void
from ragaudit.ledger.messages.handover import Entry
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.receipts import GeneratedReceipt
from ragaudit.ledger.messages.verdict import Status
from ragaudit.verifier.accounts import account_records
from ragaudit.verifier.arbiter import Arbiter
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import CHECKS
from ragaudit.verifier.procedure.statement_checks import judge

use_cached_table()


def played(kind: type[SubmittedAnswers]) -> tuple[SubmittedAnswers, dict[str, bytes]]:
    window, items = made_once(kind)
    assert isinstance(window, SubmittedAnswers)
    return window, items


def test_receipts_of_logged_answers_are_counted_and_found() -> None:
    outcome = outcome_of(SubmittedAnswers)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    _, items = played(SubmittedAnswers)
    listed = canonical_json.loads(items[names.RECEIPTS])
    answers = [each for each in listed if each["format"] == GeneratedReceipt.FORMAT]
    assert len(answers) == 3
    assert outcome.check("receipts").reason == f"{len(listed)} receipts, all of them in the log"
    assert outcome.counts["receipts"] == len(listed)


def test_they_put_nothing_into_a_stratum() -> None:
    window, _ = played(SubmittedAnswers)
    with_words = window.draw_sample(window.receipts())
    without = window.draw_sample([each for each in window.receipts() if "index" in each])
    assert with_words == without


def test_what_the_evidence_holds_of_an_account_has_them() -> None:
    window, items = played(SubmittedAnswers)
    alice = window.accounts["alice"].pseudonym
    lines = read_lines(account_records(Evidence.of(items), "p.example", "w1", alice))
    found = [each for each in lines if isinstance(each, Line)]
    receipts = [each.value for each in found if each.kind == "receipt"]
    words = [each for each in receipts if each["format"] == GeneratedReceipt.FORMAT]
    assert {GeneratedReceipt.from_json(each).pseudonym for each in words} == {alice}
    assert len(words) == 2
    # And the charges with what became of them, of hers and of nobody else's.
    own = {each.index: each for each in window.charged if each.charge.pseudonym == alice}
    entries = [Entry.from_json(each.value) for each in found if each.kind == "entry"
               and each.value["kind"] != Record.KIND]  # fmt: skip
    charges = [each for each in entries if each.kind == Charge.KIND]
    assert [each.index for each in charges] == sorted(own)
    answers = [each for each in entries if each.kind in (Generated.KIND, Void.KIND)]
    bodies: list[Generated | Void] = [
        (Void if each.kind == Void.KIND else Generated).parse(each.body) for each in answers
    ]
    assert {body.charge for body in bodies} == {*own}
    assert all(set(each.value) == {"name", "digest"} for each in found if each.kind == "item")


class SignsBeyondTheLog(SubmittedAnswers):
    """The answer's receipt names a place that the log does not have."""

    def generated_receipt(self, asked: Charged) -> GeneratedReceipt:
        found = super().generated_receipt(asked)
        if asked is not self.charged[0]:
            return found
        answer = replace(found.answer, index=99, proof=None)
        return self.sign_receipt(asked, replace(found.charge, proof=None), answer, found.issued)


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (AnswersBesideTheLog, "signed for a charge that is not in the log at that place"),
        (TellsTwoTexts, "two different receipts were signed"),
        pytest.param(
            *(LogsAnotherAnswer, "signed for an answer that is not in the log at that place"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(SignsBeyondTheLog, "signed for an answer that is not in the log at that place"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_receipts_that_contradict_the_log(cheat: type[SubmittedAnswers], reason: str) -> None:
    outcome = outcome_of(cheat)
    assert (outcome.result, outcome.failed) == ("FAIL", ("receipts",))
    window, _ = played(cheat)
    texts = said(outcome, "receipts")
    assert f"receipt for charge entry {window.charged[0].index}" in texts
    assert reason in texts
    removed = tuple(check for check in CHECKS if check.id != "receipts")
    assert outcome_of(cheat, checks=removed).result == "PASS"


def test_a_receipt_that_the_provider_did_not_sign_accuses_nobody() -> None:
    window, items = played(SubmittedAnswers)
    honest = window.generated_receipt(window.charged[0])
    forged = GeneratedReceipt(origin=window.origin,
        charge=replace(honest.charge, index=4), answer=honest.answer, issued=1,
        answer_digest=honest.answer_digest,
    ).signed(PrivateKey.from_seed(b"f" * 32))  # fmt: skip
    listed = canonical_json.loads(items[names.RECEIPTS])
    changed = [*listed, forged.to_json(), {"format": GeneratedReceipt.FORMAT}]
    outcome = judged(window, {**items, names.RECEIPTS: canonical_json.dumps(changed)})
    assert outcome.check("receipts").status is Status.PASS
    assert outcome.result == "PASS"


def test_a_true_answer_that_is_disputed_fails_nothing() -> None:
    outcome = outcome_of(DisputedAnswers)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    assert outcome.check("disputes").reason == "1 disputes, 1 judged, none upheld"


@pytest.mark.parametrize(
    ("cheat", "step"),
    [(TellsAnotherText, "step 4 (answer digest)"), (ChargesAnotherQuestion, "step 5 (openings)")],
)
def test_what_a_receipt_binds_and_the_log_does_not_have(
    cheat: type[DisputedAnswers], step: str
) -> None:
    outcome = outcome_of(cheat)
    assert outcome.failed == ("disputes",)
    assert step in said(outcome, "disputes")
    removed = tuple(check for check in CHECKS if check.id != "disputes")
    assert outcome_of(cheat, checks=removed).result == "PASS"


def test_the_arbiter_finds_as_the_verifier_would_and_keeps_nothing_of_the_file(
    tmp_path: Path,
) -> None:
    arbiter = Arbiter.create(tmp_path / "arbiter")
    window = TellsAnotherText(overrides={"keys/arbiter": arbiter.public.raw.hex()})
    window.play()
    file = window.generated_file(window.charged[0]).to_json()
    view = WindowView(window.policy, window.opening)
    finding, public = arbiter.judge(file, view, engine("core"), lambda: 1)
    assert (finding.step, finding.index) == (4, window.charged[0].index)
    assert finding.file_digest == file_digest(file)
    assert public.to_json() == file["public"]
    kept = b"".join(each.read_bytes() for each in tmp_path.rglob("*.jsonl"))
    assert kept and b"another text" not in kept and b"bazeli" not in kept


def test_nobody_disputes_the_answer_of_another() -> None:
    window, items = played(TellsAnotherText)
    asked, bob = window.charged[0], window.accounts["bob"]
    assert bob is not asked.account
    file = window.generated_file(asked).to_json()
    kept = window.dispute_file(bob, file, file=file, step=4)
    changed = {**items, names.DISPUTES: canonical_json.dumps([kept])}
    outcome = judged(window, changed)
    assert outcome.result == "PASS"
    found = said(outcome, "disputes")
    assert "dismissed" in found and "no record or charge entry of this account" in found


def test_what_an_account_changes_in_its_file_accuses_nobody() -> None:
    window, _ = played(SubmittedAnswers)
    view = WindowView(window.policy, window.opening)
    honest = SubmittedAnswers.generated_file(window, window.charged[0]).to_json()
    assert judge(honest, view, engine("core")).step == 0
    public = honest["public"]
    for change in (
        {"answer": {**honest["answer"], "text": "another text"}},
        {"request": {**honest["request"], "query": "another ?"}},
        {"private": {**honest["private"], "salt_q": "00" * 32}},
        {"private": {**honest["private"], "salt_a": "00" * 32}},
        {"private": {**honest["private"], "salt_a": None}},
        {"public": {**public, "answer_digest": "00" * 32}},
        {"public": {**public, "issued": 1}},
        {"more": 1},
        {"format": "ragaudit/v2/receipt/file"},
    ):
        with pytest.raises(RagauditError):
            judge({**honest, **change}, view, engine("core"))


class ShowsAnotherLog(SubmittedAnswers):
    """The answer in a receipt is proven under a checkpoint of a log that nobody else sees."""

    def generated_receipt(self, asked: Charged) -> GeneratedReceipt:
        found = super().generated_receipt(asked)
        if asked is not self.charged[0]:
            return found
        size, time, _ = self.checkpoints[-1]
        fork = self.cosigned(self.forked(size), time)
        proof = replace(self.proof_for(found.answer.index), checkpoint=fork.encode())
        return found.with_proofs(self.proof_for(found.charge.index), proof)


def test_a_fork_in_either_proof_is_seen() -> None:
    outcome = outcome_of(ShowsAnotherLog)
    assert outcome.failed == ("split-view",)
    entry = played(ShowsAnotherLog)[0].charged[0].index
    assert f"checkpoint in the receipt for charge entry {entry}" in said(outcome, "split-view")
