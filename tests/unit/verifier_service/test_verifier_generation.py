"""Receipts of generated answers at the verifier: taken, refused, kept as those of records are."""

from dataclasses import replace
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from generation_messages import ANSWER, CHARGE, GENERATED, PRIVATE, REQUEST
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.errors import NotFound
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.disputes import Dispute, HolderStatement
from ragaudit.ledger.messages.entries import Opening, TenantOpening
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.receipts import (
    GeneratedFile,
    GeneratedPrivate,
    GeneratedReceipt,
    LoggedEntry,
)
from ragaudit.verifier.service import disputes as service_disputes
from ragaudit.verifier.service import windows
from service_submissions import give_entries, kept, post
from verifier_service_harness import ORIGIN, WINDOW, Log, Story, dispute_key, problem_of, pseudonym

pytestmark = ON_EACH_ENGINE

SALTS = b"\x21" * 32, b"\x22" * 32


@pytest.fixture
def asked(story: Story) -> Story:
    """The window, with a charge of the first account's and its answer as the last entries."""
    for entry in receipt(story).entries:
        story.scenario.log.tree.append(entry[1].leaf_data(entry[0]))
    return story


def receipt(story: Story, **changes: Any) -> GeneratedReceipt:
    """The receipt of the answer, or of one that differs from it."""
    place = len(story.entries)
    charge = replace(CHARGE, window=WINDOW, tenant="t1", pseudonym=pseudonym(0))
    answer = replace(GENERATED, window=WINDOW, tenant="t1", charge=place)
    fields: dict[str, Any] = {
        "origin": ORIGIN,
        "charge": LoggedEntry(place, SALTS[0], charge.encode()),
        "answer": LoggedEntry(place + 1, SALTS[1], answer.encode()),
        "issued": 5000,
        "answer_digest": bytes(32),
        **changes,
    }
    key = fields.pop("key", story.scenario.provider_key)
    return GeneratedReceipt(**fields).signed(key)


def submit(story: Story, *documents: Any, **more: Any) -> Any:
    listed = [each if isinstance(each, dict) else each.to_json() for each in documents]
    return post(story, "receipts", {"receipts": listed, **more})


def test_they_are_taken_once_beside_those_of_records(asked: Story) -> None:
    words, record = receipt(asked), asked.receipt(3)
    assert submit(asked, words, record).json() == {"accepted": 2, "known": 0}
    assert submit(asked, words).json() == {"accepted": 0, "known": 1}
    assert kept(asked, "receipt") == [record.to_json(), words.to_json()]


def test_two_that_differ_are_evidence_and_a_third_is_not(asked: Story) -> None:
    three = [receipt(asked, issued=5000 + more) for more in range(3)]
    assert submit(asked, *three[:2]).json() == {"accepted": 2, "known": 0}
    assert submit(asked, three[2]).json() == {"accepted": 0, "known": 1}


@pytest.mark.parametrize("changes", [{"key": seeded("other")}, {"origin": "acme/ragaudit/w2"}])
def test_what_the_provider_did_not_sign_for_this_log(asked: Story, changes: Any) -> None:
    refused = submit(asked, receipt(asked), receipt(asked, **changes))
    assert problem_of(refused, 422, "rejected")["where"].startswith("receipts/1")
    assert kept(asked, "receipt") == []


def test_what_contradicts_itself_is_taken_once_it_is_signed(asked: Story) -> None:
    """Check 13 and disputes are about it: what nobody takes would accuse nobody."""
    honest = receipt(asked)
    false = receipt(asked, answer=replace(honest.answer, index=honest.charge.index))
    assert submit(asked, honest, false).json() == {"accepted": 2, "known": 0}
    assert false.to_json() in kept(asked, "receipt")


def test_changed_and_malformed_ones(asked: Story) -> None:
    honest = receipt(asked).to_json()
    problem_of(submit(asked, {**honest, "issued": 1}), 422, "rejected")
    for changed in (
        {**honest, "more": 1},
        {**honest, "answer": honest["charge"]},
        {**honest, "format": "ragaudit/v1/receipt"},
        {"format": GeneratedReceipt.FORMAT},
    ):
        problem_of(submit(asked, changed), 400, "malformed")
    assert kept(asked, "receipt") == []


def test_a_private_half_is_refused_and_not_repeated(asked: Story) -> None:
    private = {"format": GeneratedPrivate.FORMAT, "query": "my secret question"}
    for document in (private, {**receipt(asked).to_json(), "salt_a": "my secret"}):
        answer = submit(asked, document)
        problem_of(answer, 422, "rejected")
        assert "secret" not in answer.text


def test_proofs_under_a_cosigned_checkpoint_are_checked_and_not_kept(asked: Story) -> None:
    final, bare = asked.cosign(), receipt(asked)
    charge, answer = (asked.proof(place, final) for _, place, _ in bare.leaves)
    assert submit(asked, bare.with_proofs(charge, answer)).json() == {"accepted": 1, "known": 0}
    assert kept(asked, "receipt") == [bare.to_json()]
    assert kept(asked, "uncosigned") == []


def test_a_bad_proof_of_either_entry_cannot_be_planted(asked: Story) -> None:
    final, bare = asked.cosign(), receipt(asked)
    charge, answer = (asked.proof(place, final) for _, place, _ in bare.leaves)
    for pair in ((answer, answer), (charge, charge), (charge, replace(answer, path=()))):
        refused = submit(asked, bare.with_proofs(*pair))
        assert refused.status_code in (400, 422), refused.text
    assert kept(asked, "receipt") == []


def test_each_proof_under_a_fork_is_kept_by_itself(asked: Story) -> None:
    final, bare = asked.cosign(), receipt(asked)
    forks = []
    for more in (1, 2):
        fork = MemoryTree()
        for entry in asked.entries:
            fork.append(leaf_data(entry.salt, entry.kind, entry.body))
        for _, _, data in bare.leaves:
            fork.append(data)
        for number in range(more):
            fork.append(f"another entry {number}".encode())
        forks.append((fork, Log(asked.scenario.log.key, fork).checkpoint()))
    (_, at, _), (_, place, _) = bare.leaves
    first = asked.proof(at, forks[0][1], forks[0][0])
    second = asked.proof(place, forks[1][1], forks[1][0])
    assert submit(asked, bare.with_proofs(first, second)).json() == {"accepted": 1, "known": 0}
    apart = [bare.with_proofs(first, None).to_json(), bare.with_proofs(None, second).to_json()]
    assert kept(asked, "uncosigned") == apart
    # Where one of them is under what the verifier cosigned, the other one alone is evidence.
    again = bare.with_proofs(asked.proof(at, final), second)
    assert submit(asked, again).json() == {"accepted": 0, "known": 1}
    assert kept(asked, "uncosigned") == apart


def test_it_is_disputed_and_judged_as_an_answer_of_documents_is(
    asked: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_entries(asked)
    half = receipt(asked)
    file = GeneratedFile.issue(
        asked.scenario.provider_key, origin=ORIGIN, charge=half.charge, answered=half.answer,
        issued=half.issued, request=REQUEST, answer=ANSWER, private=PRIVATE,
    )  # fmt: skip
    made = Dispute.issue(dispute_key(0), pseudonym=pseudonym(0), receipt_file=file.to_json())
    taken = post(asked, "disputes", {"disputes": [made.to_json()], "registration": None})
    assert taken.json() == {"accepted": 1, "known": 0}, taken.text
    disputes = asked.scenario.service.disputes
    # Which charge entries are in a sample is the audit's own test, and this opening is none.
    monkeypatch.setattr(type(disputes), "demand_unsampled", lambda *_: None)
    policy = windows.policy_of(asked.scenario.service.database, ORIGIN)
    tenants = (TenantOpening("t1", 100, bytes(32), bytes(32)),)
    view = WindowView(policy, Opening(policy.digest, bytes(32), bytes(32), tenants))
    monkeypatch.setattr(service_disputes, "_view", lambda *_: view)
    other = replace(file, answer=replace(ANSWER, text="b")).to_json()
    with pytest.raises(NotFound, match="nobody disputed this file"):
        disputes.judge(ORIGIN, made.index, other)
    # The policy of this log has no such channel: the third step of 11.10.
    assert disputes.judge(ORIGIN, made.index, file.to_json()).step == 3
    with asked.scenario.service.database.read() as connection:
        (kept_dispute,) = map(canonical_json.loads, service_disputes.kept(connection, ORIGIN))
        (public,) = map(canonical_json.loads, service_disputes.judged(connection, ORIGIN))
    assert (kept_dispute["step"], kept_dispute["file"]) == (3, file.to_json())
    assert public == file.public.to_json()


def test_an_account_signs_for_its_own(asked: Story) -> None:
    give_entries(asked)
    words = receipt(asked).to_json()
    for account, status in ((1, 422), (0, 200)):
        statement = HolderStatement.issue(
            dispute_key(account), origin=ORIGIN, pseudonym=pseudonym(account), documents=[words]
        )
        assert submit(asked, words, holder=statement.to_json()).status_code == status
    assert kept(asked, "receipt") == [words]
