"""What an account signs for: it has its whole share for that, whatever others submit before."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages.disputes import HolderStatement
from ragaudit.ledger.messages.entries import Registration
from ragaudit.ledger.messages.promises import Refusal
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.verifier.service import submissions
from service_submissions import kept, post
from verifier_service_harness import (
    ORIGIN,
    START,
    Entry,
    Log,
    Story,
    VerifierScenario,
    dispute_key,
    problem_of,
    pseudonym,
)

OF_FIRST = (3, 5, 7)  # records of the first account; 4, 6 and 8 are the second's


@pytest.fixture
def story(scenario: VerifierScenario) -> Story:
    """A window whose registrations the provider gave."""
    scenario.open_window()
    story = Story(scenario)
    assert story.send("POST", "entries", {"entries": story.documents()[:3]}).status_code == 204
    return story


def statement(documents: list[Any], account: int = 0, **changes: Any) -> dict[str, Any]:
    fields = {"origin": ORIGIN, "pseudonym": pseudonym(account), "documents": documents, **changes}
    key = fields.pop("key", dispute_key(account))
    return HolderStatement.issue(key, **fields).to_json()


def hold(story: Story, *receipts: PublicReceipt, **members: Any) -> Any:
    documents = [each.to_json() for each in receipts]
    body = {"receipts": documents, "holder": statement(documents), **members}
    return post(story, "receipts", body)


def refuse(story: Story, documents: list[Any], **members: Any) -> Any:
    return post(story, "refusals", {"refusals": documents, **members})


def submit(story: Story, *receipts: PublicReceipt) -> Any:
    return post(story, "receipts", {"receipts": [each.to_json() for each in receipts]})


def indices(story: Story) -> list[int]:
    return [each["index"] for each in kept(story, "receipt")]


def room_for(story: Story, receipts: int) -> None:
    """Give each account a share of so many receipts and half of one."""
    size = len(story.receipt(3).encode())
    story.scenario.service.intake._cap = (story.scenario.policy()["slots"] + 1) * (
        receipts * size + size // 2
    )


def test_what_an_account_signs_for_takes_the_room_of_what_it_did_not(story: Story) -> None:
    room_for(story, 2)
    first, second, third = (story.receipt(index) for index in OF_FIRST)
    assert submit(story, first, second, story.receipt(4)).json() == {"accepted": 3, "known": 0}
    problem_of(submit(story, third), 429, "cap-reached")
    assert hold(story, third).json() == {"accepted": 1, "known": 0}
    assert len(kept(story, "receipt")) == 3
    assert {4, 7} < set(indices(story))
    problem_of(hold(story, first, second), 429, "cap-reached")  # its own share has room for two
    assert {4, 7} < set(indices(story))
    assert len(kept(story, "receipt")) == 3


def test_what_an_account_signed_for_gives_way_to_nothing(story: Story) -> None:
    room_for(story, 2)
    first, second, third = (story.receipt(index) for index in OF_FIRST)
    assert hold(story, first).json() == {"accepted": 1, "known": 0}
    assert submit(story, second).json() == {"accepted": 1, "known": 0}
    assert hold(story, second).json() == {"accepted": 0, "known": 1}
    problem_of(submit(story, third), 429, "cap-reached")
    problem_of(hold(story, third), 429, "cap-reached")
    assert indices(story) == [3, 5]


def test_receipts_among_strangers_become_the_holders(scenario: VerifierScenario) -> None:
    """A provider that kept the registration back left the account's receipts among strangers."""
    scenario.open_window()
    story = Story(scenario)
    room_for(story, 1)
    final = story.cosign()
    assert submit(story, story.receipt(3)).json() == {"accepted": 1, "known": 0}
    entry = story.entries[1]
    shown = {
        "index": 1,
        "salt": entry.salt.hex(),
        "body": entry.body.hex(),
        "proof": story.proof(1, final).encode().decode(),
    }
    problem_of(hold(story, story.receipt(5)), 422, "rejected")  # whose is it?
    answer = hold(story, story.receipt(3), registration=shown)
    assert answer.json() == {"accepted": 0, "known": 1}
    problem_of(hold(story, story.receipt(5)), 429, "cap-reached")
    assert submit(story, story.receipt(4)).json() == {"accepted": 1, "known": 0}


def test_two_of_others_at_a_place_keep_no_third_out(story: Story) -> None:
    many = [story.receipt(3, issued=n) for n in range(3)]
    assert submit(story, *many).json() == {"accepted": 2, "known": 1}
    assert hold(story, many[2]).json() == {"accepted": 1, "known": 0}
    assert len(kept(story, "receipt")) == 3


def test_true_checkpoints_keep_out_no_fork_of_the_holders(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The space of proofs under checkpoints that V did not cosign has the same rule."""
    monkeypatch.setattr(submissions, "MAX_UNCOSIGNED_BYTES", 5 * 4_000)
    monkeypatch.setattr(submissions, "LEAST_UNCOSIGNED_BYTES", 4_000)
    for size in range(4, 9):
        head = story.scenario.log.checkpoint(size)
        submit(story, story.receipt(3).with_proofs(story.proof(3, head)))
    fork = MemoryTree()
    for entry in story.entries[:5]:
        fork.append(leaf_data(entry.salt, entry.kind, entry.body))
    fork.append(b"another entry than the log's")
    head = Log(story.scenario.log.key, fork).checkpoint()
    forked = story.receipt(3).with_proofs(story.proof(3, head, fork))
    submit(story, forked)
    assert forked.to_json() not in kept(story, "uncosigned")
    assert hold(story, forked).json() == {"accepted": 0, "known": 1}
    assert forked.to_json() in kept(story, "uncosigned")


def test_refusals_are_held_too(story: Story) -> None:
    def refusal(counter: int) -> dict[str, Any]:
        return Refusal(origin=ORIGIN, pseudonym=pseudonym(0), counter=counter,
            reason="budget", time=1000 * START,
        ).signed(story.scenario.provider_key).to_json()  # fmt: skip

    size = len(canonical_json.dumps(refusal(0)))
    story.scenario.service.intake._cap = 5 * 2 * size
    many = [refusal(counter) for counter in range(3)]
    assert refuse(story, many[:2]).json() == {"accepted": 2, "known": 0}
    problem_of(refuse(story, many[2:]), 429, "cap-reached")
    answer = refuse(story, many[2:], holder=statement(many[2:]))
    assert answer.json() == {"accepted": 1, "known": 0}
    assert many[2] in kept(story, "refusal")


def test_who_signed_for_what(story: Story) -> None:
    receipt, other = story.receipt(3), story.receipt(4)
    mine = [receipt.to_json()]
    refused = (
        {"holder": statement(mine, key=seeded("other"))},
        {"holder": statement(mine, key=dispute_key(1))},
        {"holder": statement(mine, pseudonym=sha256(b"nobody").digest())},
        {"holder": statement(mine, origin="acme/ragaudit/w2")},
        {"holder": statement([])},
        {"holder": statement([story.receipt(5).to_json()])},
        {"holder": statement(mine, account=1)},  # signed by another account than the receipt's
    )
    for members in refused:
        assert hold(story, receipt, **members).status_code == 422, members
    both = [receipt.to_json(), other.to_json()]
    problem_of(
        post(story, "receipts", {"receipts": both, "holder": statement(both)}), 422, "rejected"
    )
    answer = post(story, "receipts", {"receipts": both[::-1], "holder": statement(both)})
    problem_of(answer, 422, "receipt-rejected")
    bad: tuple[Any, ...] = ({}, {**statement(mine), "more": 1}, [], "x")
    for malformed in bad:
        assert hold(story, receipt, holder=malformed).status_code == 400, malformed
    assert kept(story, "receipt") == []
    assert hold(story, receipt, holder=None).json() == {"accepted": 1, "known": 0}


def test_an_account_without_a_dispute_key_signs_for_nothing(scenario: VerifierScenario) -> None:
    scenario.open_window()
    story = Story(scenario)
    bare = replace(Registration.parse(story.entries[1].body), dispute_key=None).encode()
    entry = Entry("registration", bare).document(1)
    assert story.send("POST", "entries", {"entries": [entry]}).status_code == 204
    document = problem_of(hold(story, story.receipt(3)), 422, "rejected")
    assert "no dispute key" in document["detail"]
