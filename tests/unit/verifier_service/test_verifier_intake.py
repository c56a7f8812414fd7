"""Receipts and refusals: what is taken, what is refused, until when, and whose share it fills."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data
from ragaudit.lab.attacks.cheats.promises import another_signature
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.log.notes import ED25519, SigningKey, parse_note, sign_note
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.promises import Refusal, least_share
from ragaudit.verifier.service import submissions, tables
from ragaudit.verifier.settings import MAX_ITEM_BYTES, Limits
from service_submissions import BASE, give_entries, kept, post
from sqlalchemy import select
from verifier_service_harness import (
    END,
    SAMPLING,
    START,
    Log,
    Story,
    VerifierScenario,
    problem_of,
    pseudonym,
)

pytestmark = ON_EACH_ENGINE


def submit(story: Any, *receipts: Any) -> Any:
    documents = [each if isinstance(each, dict) else each.to_json() for each in receipts]
    return post(story, "receipts", {"receipts": documents})


def test_receipts_are_taken_once(story: Any) -> None:
    first, second = story.receipt(3), story.receipt(4)
    assert submit(story, first).json() == {"accepted": 1, "known": 0}
    assert submit(story, first, second, second).json() == {"accepted": 1, "known": 2}
    assert kept(story, "receipt") == [first.to_json(), second.to_json()]


def test_two_different_receipts_for_one_record_are_both_evidence(story: Any) -> None:
    other = story.receipt(3, answer_digest=sha256(b"other").digest())
    assert submit(story, story.receipt(3), other).json() == {"accepted": 2, "known": 0}


@pytest.mark.parametrize("changes", [{"key": seeded("other")}, {"origin": "acme/ragaudit/w2"}])
def test_receipts_that_the_provider_did_not_sign_for_this_log(story: Any, changes: Any) -> None:
    document = problem_of(
        submit(story, story.receipt(3), story.receipt(4, **changes)), 422, "rejected"
    )
    assert document["where"].startswith("receipts/1")
    assert kept(story, "receipt") == []


@pytest.mark.parametrize(
    "changes", [{"index": 4}, {"salt": "06" * 32}, {"issued": 1}, {"answer_digest": "00" * 32}]
)
def test_a_changed_receipt(story: Any, changes: Any) -> None:
    problem_of(submit(story, {**story.receipt(3).to_json(), **changes}), 422, "rejected")


@pytest.mark.parametrize("document", [{}, {"format": "ragaudit/v1/receipt"}, {"receipts": []}])
def test_malformed_receipts(story: Any, document: Any) -> None:
    problem_of(submit(story, document), 400, "malformed")
    problem_of(submit(story, {**story.receipt(3).to_json(), "more": 1}), 400, "malformed")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"receipts": {}}', b'{"receipts": [1]}', b'{"receipts": [[]]}']
)
def test_malformed_bodies(story: Any, body: Any) -> None:
    for path in ("receipts", "refusals", "claims", "disputes", "statements", "findings"):
        assert post(story, path, body).status_code == 400


def test_at_most_a_thousand_at_once(story: Any) -> None:
    problem_of(post(story, "receipts", {"receipts": [{}] * 1001}), 400, "malformed-request")


def test_a_private_half_is_refused_and_not_repeated(story: Any) -> None:
    private = {"format": "ragaudit/v1/receipt/private", "query": "my secret question"}
    for document in (private, {**story.receipt(3).to_json(), "private": {"query": "my secret"}}):
        answer = submit(story, document)
        problem_of(answer, 422, "rejected")
        assert "secret" not in answer.text


def test_a_proof_under_a_cosigned_checkpoint_is_checked_and_not_kept(story: Any) -> None:
    final = story.cosign()
    receipt = story.receipt(3).with_proofs(story.proof(3, final))
    assert submit(story, receipt).json() == {"accepted": 1, "known": 0}
    assert kept(story, "receipt") == [replace(receipt, proof=None).to_json()]
    assert kept(story, "uncosigned") == []


def test_a_bad_proof_cannot_be_planted(story: Any) -> None:
    final = story.cosign()
    good = story.proof(3, final)
    other_log = SigningKey(story.scenario.log.key.name, ED25519, seeded("thief"))
    bad = [
        story.proof(4, final),
        replace(good, path=good.path[:-1]),
        replace(good, path=(bytes(32), *good.path[1:])),
        replace(good, checkpoint=story.scenario.log.checkpoint(key=other_log)),
    ]
    for proof in bad:
        answer = submit(story, story.receipt(3).with_proofs(proof))
        assert answer.status_code in (400, 422), answer.text
    changed = {**story.receipt(3).to_json(), "proof": "not a proof"}
    problem_of(submit(story, changed), 400, "malformed")
    assert kept(story, "receipt") == []


def test_a_proof_under_a_fork_is_kept_as_evidence(story: Any) -> None:
    story.cosign()
    fork = MemoryTree()
    for entry in story.entries[:4]:
        fork.append(leaf_data(entry.salt, entry.kind, entry.body))
    fork.append(b"another entry than the log's")
    log = Log(story.scenario.log.key, fork)
    extra = SigningKey("other.example/log", ED25519, seeded("other"))
    note = parse_note(log.checkpoint())
    padded = note.with_signatures([sign_note(note.text, extra)]).encode()
    receipt = story.receipt(3).with_proofs(story.proof(3, padded, fork))
    assert submit(story, receipt).json() == {"accepted": 1, "known": 0}
    again = story.receipt(3).with_proofs(story.proof(3, log.checkpoint(), fork))
    assert submit(story, again).json() == {"accepted": 0, "known": 1}
    assert kept(story, "uncosigned") == [again.to_json()]


def test_true_checkpoints_crowd_out_neither_receipts_nor_forks(
    story: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider fills an account's share with heads that its log really had."""
    monkeypatch.setattr(submissions, "MAX_UNCOSIGNED_BYTES", 5 * 4_000)
    monkeypatch.setattr(submissions, "LEAST_UNCOSIGNED_BYTES", 4_000)
    story.send("POST", "entries", {"entries": story.documents()[:3]})
    for size in range(4, 9):
        head = story.scenario.log.checkpoint(size)
        receipt = story.receipt(3).with_proofs(story.proof(3, head))
        answer = submit(story, receipt)
        assert answer.json() == {"accepted": int(size == 4), "known": int(size > 4)}
    assert 1 <= len(kept(story, "uncosigned")) <= 4
    fork = MemoryTree()
    for entry in story.entries[:5]:
        fork.append(leaf_data(entry.salt, entry.kind, entry.body))
    fork.append(b"another entry than the log's")
    forked = Log(story.scenario.log.key, fork).checkpoint()
    receipt = story.receipt(4).with_proofs(story.proof(4, forked, fork))  # of another account
    assert submit(story, receipt).json() == {"accepted": 1, "known": 0}
    assert receipt.to_json() in kept(story, "uncosigned")


@pytest.mark.parametrize(
    ("slots", "share", "uncosigned"),
    [
        (4, 48 * 2**20, 3 * 2**20),
        (3_839, 2**16, 2**12),
        (25_599, 2**16, 2**12),
        (51_199, 2**15, 2**12),
        (102_399, 2**14, 2**12),
    ],
)
def test_the_shares_of_windows(slots: int, share: int, uncosigned: int) -> None:
    """Each account has its share whatever the others submit, and a list fits into an item."""
    limit = Limits().submitted_bytes
    kinds = submissions.Room.of(limit, slots), submissions.Room.of_uncosigned(slots)
    assert [room.share for room in kinds] == [share, uncosigned]
    assert [room.all for room in kinds] == [(slots + 1) * share, (slots + 1) * uncosigned]
    assert kinds[0].all <= limit
    assert sum(room.all for room in kinds) + 2**22 < MAX_ITEM_BYTES  # a comma for each
    assert 2 * (least_share(slots) // 2) <= share  # two claims of the greatest length


def test_no_window_needs_more_than_the_limit() -> None:
    limit = Limits().submitted_bytes
    most = submissions.most_slots(limit)
    for slots in (*range(1, most, 997), most):
        assert least_share(slots) >= submissions.LEAST_SHARE_BYTES
        assert (slots + 1) * submissions.Room.of(limit, slots).share <= limit


def test_a_registration_first_seen_in_the_handover_gives_a_share(story: Any) -> None:
    """A provider that keeps registrations back leaves their accounts among strangers till then."""
    submit(story, story.receipt(3))
    assert owners(story) == [submissions.NOBODY]
    story.cosign()
    story.scenario.clock.at(END)
    assert story.send("PUT", "records", story.handover()).status_code == 204
    submit(story, story.receipt(5))
    assert owners(story) == [submissions.NOBODY, pseudonym(0)]


def owners(story: Any) -> list[bytes]:
    """Whose share each receipt counts against, by its index."""
    table = tables.submission
    query = select(table.c.account).where(table.c.kind == "receipt").order_by(table.c.position)
    with story.scenario.service.database.read() as connection:
        return [bytes(each) for each in connection.execute(query).scalars()]


def test_receipts_end_at_the_sampling_instant(story: Any) -> None:
    story.scenario.clock.now = 1000 * SAMPLING - 1
    assert submit(story, story.receipt(3)).status_code == 200
    story.scenario.clock.now = 1000 * SAMPLING
    problem_of(submit(story, story.receipt(4)), 409, "too-late")
    problem_of(post(story, "refusals", {"refusals": []}), 409, "too-late")


def test_receipts_have_a_cap(tmp_path: Path, auditor: Any) -> None:
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running():
        scenario.open_window()
        scenario.service.intake._cap = 20_000
        story = Story(scenario)
        taken = 0
        for index in story.records:
            answer = submit(story, story.receipt(index))
            if answer.status_code != 200:
                break
            taken += 1
        problem_of(answer, 429, "cap-reached")
        assert len(kept(story, "receipt")) == taken > 0


def test_a_window_that_is_not_countersigned_takes_nothing(scenario: Any) -> None:
    for path in ("receipts", "refusals"):
        body = canonical_json.dumps({path: []})
        problem_of(scenario.client.post(f"{BASE}/{path}", content=body), 404, "not-found")
    scenario.register()
    for path in ("receipts", "refusals"):
        body = canonical_json.dumps({path: []})
        problem_of(scenario.client.post(f"{BASE}/{path}", content=body), 409, "conflict")


def refusal(story: Any, **changes: Any) -> Refusal:
    fields = {
        "origin": story.scenario.log.key.name, "pseudonym": pseudonym(0), "counter": 4,
        "reason": "budget", "time": 1000 * START, **changes,
    }  # fmt: skip
    key = fields.pop("key", story.scenario.provider_key)
    return Refusal(**fields).signed(key)


def test_refusals(story: Any) -> None:
    first = refusal(story).to_json()
    answer = post(story, "refusals", {"refusals": [first, first]})
    assert answer.json() == {"accepted": 1, "known": 1}
    assert kept(story, "refusal") == [first]


@pytest.mark.parametrize("changes", [{"key": seeded("other")}, {"origin": "acme/ragaudit/w2"}])
def test_refusals_of_others(story: Any, changes: Any) -> None:
    document = {"refusals": [refusal(story, **changes).to_json()]}
    problem_of(post(story, "refusals", document), 422, "rejected")


def test_malformed_refusals(story: Any) -> None:
    document = {**refusal(story).to_json(), "reason": "whim"}
    problem_of(post(story, "refusals", {"refusals": [document]}), 400, "malformed")


@pytest.mark.parametrize(("limit", "most"), [(None, 102_399), (240, 3_839), (1, 15)])
def test_each_slot_has_its_share(
    tmp_path: Path, auditor: Any, limit: int | None, most: int
) -> None:
    """Of a verifier that takes less nobody could know how long its claims may be."""
    scenario = VerifierScenario(tmp_path, auditor)
    limits = Limits() if limit is None else Limits(submitted_bytes=limit * 2**20)
    with scenario.running(scenario.settings.model_copy(update={"limits": limits})):
        document = problem_of(scenario.register(slots=most + 1), 422, "rejected")
        assert (document["where"], document["expected"]) == ("policy/slots", f"at most {most}")
        assert scenario.register(slots=most).status_code == 201


def test_an_account_has_a_share_that_others_cannot_fill(tmp_path: Path, auditor: Any) -> None:
    """The provider signs refusals to pseudonyms that it invents; a real account has room left."""
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running():
        scenario.open_window()
        story = Story(scenario)
        give_entries(story)
        slots = scenario.policy()["slots"]
        scenario.service.intake._cap = (slots + 1) * least_share(slots)
        size = len(refusal(story).encode())
        many = least_share(slots) // size
        invented = [
            refusal(story, pseudonym=sha256(bytes([n % 256, n // 256])).digest()).to_json()
            for n in range(many + 1)
        ]
        assert post(story, "refusals", {"refusals": invented[:many]}).status_code == 200
        problem_of(post(story, "refusals", {"refusals": invented[many:]}), 429, "cap-reached")
        assert post(story, "refusals", {"refusals": [refusal(story).to_json()]}).json() == {
            "accepted": 1,
            "known": 0,
        }


def test_a_refusal_is_one_however_often_it_is_given(story: Any) -> None:
    """An account can have itself refused as often as it likes: the time says nothing."""
    many = [refusal(story, time=1000 * START + n).to_json() for n in range(5)]
    assert post(story, "refusals", {"refusals": many}).json() == {"accepted": 1, "known": 4}
    other = refusal(story, counter=3).to_json()
    assert post(story, "refusals", {"refusals": [other]}).json() == {"accepted": 1, "known": 0}


def test_receipts_by_resigning_are_one(story: Any) -> None:
    first = story.receipt(3)
    fields = (first.origin, first.index, first.salt, first.body, first.issued, first.answer_digest)
    again = replace(
        first, signature=another_signature(story.scenario.provider_key, "receipt", *fields)
    )
    again.verify(story.scenario.provider_key.public)
    assert submit(story, first, again).json() == {"accepted": 1, "known": 1}


def test_a_third_receipt_for_one_record_proves_nothing_more(story: Any) -> None:
    many = [story.receipt(3, issued=n) for n in range(4)]
    assert submit(story, *many).json() == {"accepted": 2, "known": 2}
