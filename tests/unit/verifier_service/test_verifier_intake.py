"""Receipts, refusals, claims and disputes: what is taken, what is refused, and until when."""

from dataclasses import replace
from hashlib import sha256

import pytest
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data, structure
from ragaudit.ledger.notes import ED25519, SigningKey, parse_note, sign_note
from ragaudit.ledger.promises import Promise, Refusal
from ragaudit.ledger.receipts import PrivateReceipt, ReceiptFile, answer_digest
from ragaudit.ledger.requests import Answer
from ragaudit.ledger.tree import MemoryTree
from ragaudit.verifier.service import submissions
from ragaudit.verifier.settings import Limits
from verifier_service_harness import (
    END,
    OPENINGS,
    SAMPLING,
    START,
    WINDOW,
    Desk,
    Log,
    Story,
    nonce_chain,
    problem_of,
    pseudonym,
    record,
    request_for,
    seeded,
)

BASE = f"/v1/windows/{WINDOW}"
EXPIRED_AFTER_SECONDS = 30 + 5  # promise life and clock skew of the harness's policy


@pytest.fixture
def story(desk):
    desk.open_window()
    return Story(desk)


def post(story, path, document):
    data = document if isinstance(document, bytes) else canonical_json.dumps(document)
    return story.desk.client.post(f"{BASE}/{path}", content=data)


def submit(story, *receipts):
    documents = [each if isinstance(each, dict) else each.to_json() for each in receipts]
    return post(story, "receipts", {"receipts": documents})


def kept(story, kind):
    with story.desk.service.database.read() as connection:
        documents = submissions.documents(connection, WINDOW, kind)
    return [canonical_json.loads(each) for each in documents]


def test_receipts_are_taken_once(story) -> None:
    first, second = story.receipt(3), story.receipt(4)
    assert submit(story, first).json() == {"accepted": 1, "known": 0}
    assert submit(story, first, second, second).json() == {"accepted": 1, "known": 2}
    assert kept(story, "receipt") == [first.to_json(), second.to_json()]


def test_two_different_receipts_for_one_record_are_both_evidence(story) -> None:
    other = story.receipt(3, answer_digest=sha256(b"other").digest())
    assert submit(story, story.receipt(3), other).json() == {"accepted": 2, "known": 0}


@pytest.mark.parametrize(
    "changes",
    [
        {"key": seeded("other")},
        {"origin": "acme/ragaudit/w2"},
    ],
)
def test_receipts_that_the_provider_did_not_sign_for_this_log(story, changes) -> None:
    document = problem_of(
        submit(story, story.receipt(3), story.receipt(4, **changes)), 422, "rejected"
    )
    assert document["where"].startswith("receipts/1")
    assert kept(story, "receipt") == []


@pytest.mark.parametrize(
    "changes", [{"index": 4}, {"salt": "06" * 32}, {"issued": 1}, {"answer_digest": "00" * 32}]
)
def test_a_changed_receipt(story, changes) -> None:
    problem_of(submit(story, {**story.receipt(3).to_json(), **changes}), 422, "rejected")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"format": "ragaudit/v1/receipt"},
        {"receipts": []},
    ],
)
def test_malformed_receipts(story, document) -> None:
    problem_of(submit(story, document), 400, "malformed")
    problem_of(submit(story, {**story.receipt(3).to_json(), "more": 1}), 400, "malformed")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"receipts": {}}', b'{"receipts": [1]}', b'{"receipts": [[]]}']
)
def test_malformed_bodies(story, body) -> None:
    for path in ("receipts", "refusals", "claims", "disputes"):
        assert post(story, path, body).status_code == 400


def test_at_most_a_thousand_at_once(story) -> None:
    problem_of(post(story, "receipts", {"receipts": [{}] * 1001}), 400, "malformed")


def test_a_private_half_is_refused_and_not_repeated(story) -> None:
    private = {"format": "ragaudit/v1/receipt/private", "query": "my secret question"}
    for document in (private, {**story.receipt(3).to_json(), "private": {"query": "my secret"}}):
        answer = submit(story, document)
        problem_of(answer, 422, "rejected")
        assert "secret" not in answer.text


def test_a_proof_under_a_cosigned_checkpoint_is_checked_and_not_kept(story) -> None:
    final = story.cosign()
    receipt = story.receipt(3).with_proof(story.proof(3, final))
    assert submit(story, receipt).json() == {"accepted": 1, "known": 0}
    assert kept(story, "receipt") == [replace(receipt, proof=None).to_json()]
    assert kept(story, "uncosigned") == []


def test_a_bad_proof_cannot_be_planted(story) -> None:
    final = story.cosign()
    good = story.proof(3, final)
    other_log = SigningKey(story.desk.log.key.name, ED25519, seeded("thief"))
    bad = [
        story.proof(4, final),
        replace(good, path=good.path[:-1]),
        replace(good, path=(bytes(32), *good.path[1:])),
        replace(good, checkpoint=story.desk.log.checkpoint(key=other_log)),
    ]
    for proof in bad:
        answer = submit(story, story.receipt(3).with_proof(proof))
        assert answer.status_code in (400, 422), answer.text
    changed = {**story.receipt(3).to_json(), "proof": "not a proof"}
    problem_of(submit(story, changed), 400, "malformed")
    assert kept(story, "receipt") == []


def test_a_proof_under_a_fork_is_kept_as_evidence(story) -> None:
    story.cosign()
    fork = MemoryTree()
    for entry in story.entries[:4]:
        fork.append(leaf_data(entry.salt, entry.kind, entry.body))
    fork.append(b"another entry than the log's")
    log = Log(story.desk.log.key, fork)
    extra = SigningKey("other.example/log", ED25519, seeded("other"))
    note = parse_note(log.checkpoint())
    padded = note.with_signatures([sign_note(note.text, extra)]).encode()
    receipt = story.receipt(3).with_proof(story.proof(3, padded, fork))
    assert submit(story, receipt).json() == {"accepted": 1, "known": 0}
    again = story.receipt(3).with_proof(story.proof(3, log.checkpoint(), fork))
    assert submit(story, again).json() == {"accepted": 0, "known": 1}
    assert kept(story, "uncosigned") == [again.to_json()]


def test_receipts_end_at_the_sampling_instant(story) -> None:
    story.desk.clock.now = 1000 * SAMPLING - 1
    assert submit(story, story.receipt(3)).status_code == 200
    story.desk.clock.now = 1000 * SAMPLING
    problem_of(submit(story, story.receipt(4)), 409, "too-late")
    problem_of(post(story, "refusals", {"refusals": []}), 409, "too-late")
    problem_of(post(story, "disputes", dispute(story)), 409, "too-late")


def test_receipts_have_a_cap(tmp_path, auditor) -> None:
    desk = Desk(tmp_path, auditor)
    limits = Limits(submitted_bytes=4000)
    with desk.running(desk.settings.model_copy(update={"limits": limits})):
        desk.open_window()
        story = Story(desk)
        taken = 0
        for index in story.records:
            answer = submit(story, story.receipt(index))
            if answer.status_code != 200:
                break
            taken += 1
        problem_of(answer, 429, "cap")
        assert len(kept(story, "receipt")) == taken > 0


def test_a_window_that_is_not_countersigned_takes_nothing(desk) -> None:
    for path in ("receipts", "refusals"):
        body = canonical_json.dumps({path: []})
        problem_of(desk.client.post(f"{BASE}/{path}", content=body), 404, "unknown")
    desk.register()
    for path in ("receipts", "refusals"):
        body = canonical_json.dumps({path: []})
        problem_of(desk.client.post(f"{BASE}/{path}", content=body), 409, "conflict")


def refusal(story, **changes) -> Refusal:
    fields = {
        "origin": story.desk.log.key.name,
        "pseudonym": pseudonym(0),
        "counter": 4,
        "reason": "budget",
        "time": 1000 * START,
        **changes,
    }
    return Refusal.issue(fields.pop("key", story.desk.provider_key), **fields)


def test_refusals(story) -> None:
    first = refusal(story).to_json()
    answer = post(story, "refusals", {"refusals": [first, first]})
    assert answer.json() == {"accepted": 1, "known": 1}
    assert kept(story, "refusal") == [first]


@pytest.mark.parametrize("changes", [{"key": seeded("other")}, {"origin": "acme/ragaudit/w2"}])
def test_refusals_of_others(story, changes) -> None:
    document = {"refusals": [refusal(story, **changes).to_json()]}
    problem_of(post(story, "refusals", document), 422, "rejected")


def test_malformed_refusals(story) -> None:
    document = {**refusal(story).to_json(), "reason": "whim"}
    problem_of(post(story, "refusals", {"refusals": [document]}), 400, "malformed")


def promise(story, account=0, counter=1, **changes) -> Promise:
    body = record(story.desk, account, counter).promised().encode()
    fields = {
        "origin": story.desk.log.key.name,
        "body": body,
        "request": request_for(counter, anchored=True),
        "openings": OPENINGS,
        **changes,
    }
    return Promise.issue(fields.pop("key", story.desk.provider_key), **fields)


def claim(story, given=None, nonce=None, account=0, counter=1):
    found = given or promise(story, account, counter)
    revealed = nonce or nonce_chain(account).nonce(counter)
    return post(story, "claims", {"promise": found.to_json(), "nonce": revealed.hex()})


def give_entries(story):
    return story.send("POST", "entries", {"entries": story.documents()[:3]})


def test_claims(story) -> None:
    assert claim(story).json() == {"accepted": 1, "known": 0}
    assert claim(story).json() == {"accepted": 0, "known": 1}
    expected = {"promise": promise(story).to_json(), "nonce": nonce_chain(0).nonce(1).hex()}
    answer = story.send("GET", "claims")
    problem_of(answer, 425, "too-early")
    assert answer.headers["retry-after"] == str(END - story.desk.clock.now // 1000)
    story.desk.clock.at(END)
    assert story.send("GET", "claims").json() == {"claims": [expected]}
    problem_of(claim(story, counter=2), 409, "too-late")


def test_a_claim_on_an_expired_promise(story) -> None:
    given = promise(story)
    made = given.record.time // 1000
    story.desk.clock.at(made + EXPIRED_AFTER_SECONDS + 1)
    problem_of(claim(story, given=given), 422, "rejected")


def test_claims_are_the_providers_to_read(story) -> None:
    story.desk.clock.at(END)
    problem_of(story.desk.client.get(f"{BASE}/claims"), 401, "unauthenticated")


def test_a_wrong_nonce_where_the_registration_is_known(story) -> None:
    assert give_entries(story).status_code == 204
    problem_of(claim(story, nonce=bytes(32)), 422, "chain-rejected")
    problem_of(claim(story, nonce=nonce_chain(0).nonce(0)), 422, "chain-rejected")
    problem_of(claim(story, nonce=nonce_chain(1).nonce(1)), 422, "chain-rejected")
    assert claim(story).status_code == 200


def test_a_claim_cannot_be_blocked_by_withholding_the_registration(story) -> None:
    assert claim(story, nonce=bytes([1] * 32)).status_code == 200
    assert claim(story).json() == {"accepted": 1, "known": 0}


@pytest.mark.parametrize(
    "changes",
    [
        {"key": seeded("other")},
        {"origin": "acme/ragaudit/w2"},
        {"request": request_for(2, anchored=True)},
        {"openings": replace(OPENINGS, query="another question")},
    ],
)
def test_claims_that_the_provider_did_not_sign(story, changes) -> None:
    answer = claim(story, given=promise(story, **changes))
    assert answer.status_code == 422, answer.text
    assert "another question" not in answer.text


def receipt_file(story, index=3, **changes) -> ReceiptFile:
    request = request_for(0, anchored=True)
    answer = Answer(())
    private = PrivateReceipt(OPENINGS, (), b"\x07" * 32, b"\x08" * 32, ())
    digest = answer_digest(request, answer, private)
    public = story.receipt(index, answer_digest=digest, **changes)
    return ReceiptFile(request, answer, public, private)


def dispute(story, **changes):
    return receipt_file(story, **changes).to_json()


def test_disputes(story) -> None:
    assert post(story, "disputes", dispute(story)).json() == {"accepted": 1, "known": 0}
    assert post(story, "disputes", dispute(story)).json() == {"accepted": 0, "known": 1}
    assert kept(story, "dispute") == [dispute(story)]


def test_a_dispute_is_bound_by_the_signature(story) -> None:
    good = dispute(story)
    for changed in (
        {**good, "request": {**good["request"], "top_k": 2}},
        {**good, "answer": {"documents": [{}]}},
        {**good, "private": {**good["private"], "query": "planted"}},
        dispute(story, key=seeded("other")),
        dispute(story, origin="acme/ragaudit/w2"),
    ):
        answer = post(story, "disputes", changed)
        assert answer.status_code == 422, answer.text
        assert "planted" not in answer.text


def test_a_signed_answer_in_an_impossible_form_can_be_disputed(story) -> None:
    """The provider signed the digest of it, so its form is no excuse."""
    file = dispute(story)
    file["answer"] = {"documents": "what I was given was not even a list"}
    salt = bytes.fromhex(file["private"]["salt_r"])
    halves = [canonical_json.dumps(file[name]) for name in ("request", "answer", "private")]
    file["public"] = story.receipt(3, answer_digest=structure("answer", salt, *halves)).to_json()
    assert post(story, "disputes", file).json() == {"accepted": 1, "known": 0}


@pytest.mark.parametrize(
    "change", [{"private": {}}, {"private": 1}, {"format": "x"}, {"more": 1}, {"public": {}}]
)
def test_malformed_disputes(story, change) -> None:
    assert post(story, "disputes", {**dispute(story), **change}).status_code == 400
