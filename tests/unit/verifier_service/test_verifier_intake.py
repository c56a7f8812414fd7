"""Receipts, refusals and claims: what is taken, what is refused, and until when."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.errors import RefusedError
from ragaudit.lab.attacks.forging.resigning import another_signature
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.log.notes import ED25519, SigningKey, parse_note, sign_note
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.ledger.messages import promises
from ragaudit.ledger.messages.promises import Claim, Promise, Refusal
from ragaudit.ledger.messages.records import Registration
from ragaudit.verifier.service import intake, submissions, tables
from ragaudit.verifier.settings import Limits
from sqlalchemy import select
from verifier_service_harness import (
    END,
    OPENINGS,
    ORIGIN,
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
)

BASE = f"/v1/windows/{WINDOW}"
EXPIRED_AFTER_SECONDS = 30 + 5  # promise life and clock skew of the harness's policy


@pytest.fixture
def story(desk: Any) -> Story:
    desk.open_window()
    return Story(desk)


def post(story: Any, path: Any, document: Any) -> Any:
    data = document if isinstance(document, bytes) else canonical_json.dumps(document)
    return story.desk.client.post(f"{BASE}/{path}", content=data)


def submit(story: Any, *receipts: Any) -> Any:
    documents = [each if isinstance(each, dict) else each.to_json() for each in receipts]
    return post(story, "receipts", {"receipts": documents})


def kept(story: Any, kind: Any) -> Any:
    with story.desk.service.database.read() as connection:
        documents = submissions.documents(connection, ORIGIN, kind)
    return [canonical_json.loads(each) for each in documents]


def test_receipts_are_taken_once(story: Any) -> None:
    first, second = story.receipt(3), story.receipt(4)
    assert submit(story, first).json() == {"accepted": 1, "known": 0}
    assert submit(story, first, second, second).json() == {"accepted": 1, "known": 2}
    assert kept(story, "receipt") == [first.to_json(), second.to_json()]


def test_two_different_receipts_for_one_record_are_both_evidence(story: Any) -> None:
    other = story.receipt(3, answer_digest=sha256(b"other").digest())
    assert submit(story, story.receipt(3), other).json() == {"accepted": 2, "known": 0}


@pytest.mark.parametrize(
    "changes",
    [
        {"key": seeded("other")},
        {"origin": "acme/ragaudit/w2"},
    ],
)
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


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"format": "ragaudit/v1/receipt"},
        {"receipts": []},
    ],
)
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
    receipt = story.receipt(3).with_proof(story.proof(3, final))
    assert submit(story, receipt).json() == {"accepted": 1, "known": 0}
    assert kept(story, "receipt") == [replace(receipt, proof=None).to_json()]
    assert kept(story, "uncosigned") == []


def test_a_bad_proof_cannot_be_planted(story: Any) -> None:
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


def test_a_proof_under_a_fork_is_kept_as_evidence(story: Any) -> None:
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


def test_true_checkpoints_crowd_out_neither_receipts_nor_forks(
    story: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider fills an account's share with heads that its log really had."""
    monkeypatch.setattr(intake, "MAX_UNCOSIGNED_BYTES", 5 * 4_000)
    story.send("POST", "entries", {"entries": story.documents()[:3]})
    for size in range(4, 9):
        head = story.desk.log.checkpoint(size)
        receipt = story.receipt(3).with_proof(story.proof(3, head))
        answer = submit(story, receipt)
        assert answer.json() == {"accepted": int(size == 4), "known": int(size > 4)}
    assert 1 <= len(kept(story, "uncosigned")) <= 4
    fork = MemoryTree()
    for entry in story.entries[:5]:
        fork.append(leaf_data(entry.salt, entry.kind, entry.body))
    fork.append(b"another entry than the log's")
    forked = Log(story.desk.log.key, fork).checkpoint()
    receipt = story.receipt(4).with_proof(story.proof(4, forked, fork))  # of another account
    assert submit(story, receipt).json() == {"accepted": 1, "known": 0}
    assert receipt.to_json() in kept(story, "uncosigned")


def test_every_account_of_the_largest_window_has_room_for_a_fork() -> None:
    slots = Limits().submitted_bytes // submissions.LEAST_SHARE_BYTES - 1
    assert intake.MAX_UNCOSIGNED_BYTES // (slots + 1) >= 4096
    both = Limits().submitted_bytes + intake.MAX_UNCOSIGNED_BYTES
    assert both + 2**19 < canonical_json.MAX_BYTES  # a comma for each


def test_a_registration_first_seen_in_the_handover_gives_a_share(story: Any) -> None:
    """A provider that keeps registrations back leaves their accounts among strangers till then."""
    submit(story, story.receipt(3))
    assert owners(story) == [submissions.NOBODY]
    story.cosign()
    story.desk.clock.at(END)
    assert story.send("PUT", "records", story.handover()).status_code == 204
    submit(story, story.receipt(5))
    assert owners(story) == [submissions.NOBODY, pseudonym(0)]


def owners(story: Any) -> list[bytes]:
    """Whose share each receipt counts against, by its index."""
    table = tables.submission
    query = select(table.c.account).where(table.c.kind == "receipt").order_by(table.c.position)
    with story.desk.service.database.read() as connection:
        return [bytes(each) for each in connection.execute(query).scalars()]


def test_receipts_end_at_the_sampling_instant(story: Any) -> None:
    story.desk.clock.now = 1000 * SAMPLING - 1
    assert submit(story, story.receipt(3)).status_code == 200
    story.desk.clock.now = 1000 * SAMPLING
    problem_of(submit(story, story.receipt(4)), 409, "too-late")
    problem_of(post(story, "refusals", {"refusals": []}), 409, "too-late")


def test_receipts_have_a_cap(tmp_path: Path, auditor: Any) -> None:
    desk = Desk(tmp_path, auditor)
    with desk.running():
        desk.open_window()
        desk.service.intake._cap = 20_000
        story = Story(desk)
        taken = 0
        for index in story.records:
            answer = submit(story, story.receipt(index))
            if answer.status_code != 200:
                break
            taken += 1
        problem_of(answer, 429, "cap-reached")
        assert len(kept(story, "receipt")) == taken > 0


def test_a_window_that_is_not_countersigned_takes_nothing(desk: Any) -> None:
    for path in ("receipts", "refusals"):
        body = canonical_json.dumps({path: []})
        problem_of(desk.client.post(f"{BASE}/{path}", content=body), 404, "not-found")
    desk.register()
    for path in ("receipts", "refusals"):
        body = canonical_json.dumps({path: []})
        problem_of(desk.client.post(f"{BASE}/{path}", content=body), 409, "conflict")


def refusal(story: Any, **changes: Any) -> Refusal:
    fields = {
        "origin": story.desk.log.key.name,
        "pseudonym": pseudonym(0),
        "counter": 4,
        "reason": "budget",
        "time": 1000 * START,
        **changes,
    }
    return Refusal.issue(fields.pop("key", story.desk.provider_key), **fields)


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


def promise(story: Any, account: int = 0, counter: int = 1, **changes: Any) -> Promise:
    body = record(story.desk, account, counter).promised().encode()
    fields = {
        "origin": story.desk.log.key.name,
        "body": body,
        "request": request_for(counter, anchored=True),
        "openings": OPENINGS,
        **changes,
    }
    return Promise.issue(fields.pop("key", story.desk.provider_key), **fields)


def claim(
    story: Any,
    given: Any = None,
    nonce: Any = None,
    account: int = 0,
    counter: int = 1,
    registration: Any = None,
) -> Any:
    found = given or promise(story, account, counter)
    revealed = nonce or nonce_chain(account).nonce(counter)
    body = {"promise": found.to_json(), "nonce": revealed.hex(), "registration": registration}
    return post(story, "claims", body)


def give_entries(story: Any) -> Any:
    return story.send("POST", "entries", {"entries": story.documents()[:3]})


@pytest.fixture
def known(story: Any) -> Any:
    """A story whose registrations the provider gave."""
    assert give_entries(story).status_code == 204
    return story


def test_claims(known: Any) -> None:
    assert claim(known).json() == {"accepted": 1, "known": 0}
    assert claim(known).json() == {"accepted": 0, "known": 1}
    expected = {"promise": promise(known).to_json(), "nonce": nonce_chain(0).nonce(1).hex()}
    answer = known.send("GET", "claims")
    problem_of(answer, 425, "too-early")
    assert answer.headers["retry-after"] == str(END - known.desk.clock.now // 1000)
    known.desk.clock.at(END)
    assert known.send("GET", "claims").json() == {"claims": [expected], "next": None}
    problem_of(claim(known, counter=2), 409, "too-late")


def dated(story: Any, made: Any, **changes: Any) -> Promise:
    body = replace(record(story.desk, 0, 1).promised(), time=made).encode()
    return promise(story, body=body, **changes)


def test_a_claim_on_an_expired_promise(known: Any) -> None:
    now = known.desk.clock.now
    last = dated(known, now - 1000 * EXPIRED_AFTER_SECONDS)
    problem_of(claim(known, given=dated(known, last.record.time - 1)), 422, "rejected")
    assert claim(known, given=last).json() == {"accepted": 1, "known": 0}


def test_a_promise_that_is_dated_ahead_is_taken_as_evidence(known: Any) -> None:
    """The provider chose the time; to refuse the claim would be to let it choose."""
    for made in (known.desk.clock.now + 10**7, 1000 * END - 1):
        assert claim(known, given=dated(known, made)).json() == {"accepted": 1, "known": 0}


def test_a_claim_is_one_whatever_else_is_in_it(known: Any) -> None:
    """Identity is what was promised: a salt that opens nothing else, or a signature, is not."""
    assert claim(known).json() == {"accepted": 1, "known": 0}
    again = resigned(promise(known), known.desk.provider_key)
    assert again.signature != promise(known).signature
    again.verify(known.desk.provider_key.public)
    assert claim(known, given=again).json() == {"accepted": 0, "known": 1}
    assert len(kept(known, "claim")) == 1


def resigned(given: Promise, key: Any) -> Promise:
    signature = another_signature(key, "promise", given.origin, given.body)
    return replace(given, signature=signature)


def test_two_promises_for_one_query_are_kept_and_no_third(known: Any) -> None:
    now = known.desk.clock.now
    answers = [claim(known, given=dated(known, now - n)).json() for n in range(4)]
    assert [each["accepted"] for each in answers] == [1, 1, 0, 0]
    assert claim(known, counter=2).json() == {"accepted": 1, "known": 0}
    assert claim(known, account=1).json() == {"accepted": 1, "known": 0}


def test_a_claim_that_is_being_taken_is_handed_out(known: Any) -> None:
    """The race at the end: whatever was taken before it, the provider gets, or fails for it."""
    desk, database = known.desk, known.desk.service.database
    document = canonical_json.dumps({"promise": promise(known).to_json()})
    begun, hold, answers = Event(), Event(), []

    def take() -> None:
        with database.write() as transaction:
            begun.set()
            hold.wait(10)
            late = submissions.Submission(
                submissions.Kind.CLAIM, 1, b"i" * 32, document, pseudonym(0)
            )
            submissions.put(transaction, ORIGIN, late)

    def fetch() -> None:
        answers.append(known.send("GET", "claims").json())

    taking = Thread(target=take)
    taking.start()
    begun.wait(10)
    desk.clock.at(END)
    fetching = Thread(target=fetch)
    fetching.start()
    fetching.join(0.3)
    assert answers == []
    hold.set()
    taking.join()
    fetching.join()
    assert answers == [{"claims": [canonical_json.loads(document)], "next": None}]


@pytest.mark.parametrize("most", [1, 4000, 10**6])
def test_claims_come_in_pages(known: Any, monkeypatch: pytest.MonkeyPatch, most: Any) -> None:
    """All of them together may be more than a provider reads of one answer."""
    monkeypatch.setattr(intake, "CLAIMS_PAGE_BYTES", most)
    for account, counter in ((0, 1), (0, 2), (0, 3), (1, 1), (1, 2)):
        assert claim(known, account=account, counter=counter).json()["accepted"] == 1
    known.desk.clock.at(END)
    found: list[Any] = []
    after, pages = "", 0
    while after is not None:
        page = known.send("GET", f"claims?after={after}" if after else "claims").json()
        found, after, pages = [*found, *page["claims"]], page["next"], pages + 1
    identities = [Promise.from_json(each["promise"]).identity for each in found]
    assert len(identities) == 5 and identities == sorted(identities)
    assert pages == {1: 5, 4000: 3, 10**6: 1}[most]
    assert known.send("GET", f"claims?after={'f' * 64}").json() == {"claims": [], "next": None}
    for wrong in ("0", "A" * 64, "0" * 62, "0" * 66):
        assert known.send("GET", f"claims?after={wrong}").status_code == 400


def test_whether_a_promise_was_claimed(known: Any) -> None:
    made = known.desk.clock.now
    path = f"claims/{pseudonym(0).hex()}/1?made={made}"
    answer = known.send("GET", path)
    problem_of(answer, 425, "too-early")
    assert answer.headers["retry-after"] == str(EXPIRED_AFTER_SECONDS + 1)
    known.desk.clock.now = made + 1000 * EXPIRED_AFTER_SECONDS
    assert claim(known, given=dated(known, made)).status_code == 200  # its last millisecond
    problem_of(known.send("GET", path), 425, "too-early")
    known.desk.clock.now += 1
    assert known.send("GET", path).json() == {"claimed": True}
    other = f"claims/{pseudonym(0).hex()}/2?made={made}"
    assert known.send("GET", other).json() == {"claimed": False}
    problem_of(claim(known, given=dated(known, made)), 422, "rejected")
    problem_of(known.desk.client.get(f"{BASE}/{path}"), 401, "not-authenticated")
    for bad in ("claims/00/1?made=1", "claims/" + "0" * 64 + "/1", "claims/" + "0" * 64 + "/x"):
        assert known.send("GET", bad).status_code == 400


def test_claims_are_the_providers_to_read(known: Any) -> None:
    known.desk.clock.at(END)
    problem_of(known.desk.client.get(f"{BASE}/claims"), 401, "not-authenticated")


def test_a_wrong_nonce_is_refused(known: Any) -> None:
    problem_of(claim(known, nonce=bytes(32)), 422, "chain-rejected")
    problem_of(claim(known, nonce=nonce_chain(0).nonce(0)), 422, "chain-rejected")
    problem_of(claim(known, nonce=nonce_chain(1).nonce(1)), 422, "chain-rejected")
    assert claim(known).status_code == 200


def shown(story: Any, checkpoint: Any, **changes: Any) -> Any:
    """The account's own registration, as the prover gives it."""
    entry = story.entries[1]
    document = {
        "index": 1,
        "salt": entry.salt.hex(),
        "body": entry.body.hex(),
        "proof": story.proof(1, checkpoint).encode().decode(),
    }
    return {**document, **changes}


def test_a_claim_cannot_be_blocked_by_withholding_the_registration(story: Any) -> None:
    final = story.cosign()
    problem_of(claim(story), 409, "conflict")
    assert claim(story, registration=shown(story, final)).json() == {"accepted": 1, "known": 0}
    assert claim(story, registration=shown(story, final)).json() == {"accepted": 0, "known": 1}
    # It binds the provider: the handover must hold it.
    entries = [each for each in story.documents() if each["index"] == 1]
    other = {**entries[0], "salt": "77" * 32}
    problem_of(story.send("POST", "entries", {"entries": [other]}), 409, "conflict")


def test_a_claim_cannot_be_blocked_by_giving_another_registration(story: Any) -> None:
    """Its handover must hold what the provider gave, and the proof says what the log holds."""
    final = story.cosign()
    entries = [each for each in story.documents() if each["index"] == 1]
    body = Registration.parse(story.entries[1].body)
    false = {**entries[0], "body": replace(body, anchor=bytes(32)).encode().hex()}
    assert story.send("POST", "entries", {"entries": [false]}).status_code == 204
    problem_of(claim(story), 422, "chain-rejected")
    assert claim(story, registration=shown(story, final)).json() == {"accepted": 1, "known": 0}


def test_a_registration_needs_a_proof_under_a_cosigned_checkpoint(story: Any) -> None:
    final = story.cosign()
    other = story.proof(2, final).encode().decode()
    bare = story.proof(1, story.desk.log.checkpoint()).encode().decode()
    changed = Registration.parse(story.entries[1].body)
    foreign = replace(changed, window="w2").encode().hex()
    for changes in (
        {"proof": other},
        {"proof": bare},
        {"proof": "x"},
        {"salt": "77" * 32},
        {"index": 2},
        {"body": story.entries[2].body.hex()},
        {"body": story.entries[3].body.hex()},  # a record
        {"body": foreign},
    ):
        answer = claim(story, registration=shown(story, final, **changes))
        assert answer.status_code in (400, 422), changes
    problem_of(claim(story), 409, "conflict")


@pytest.mark.parametrize(
    "changes",
    [
        {"key": seeded("other")},
        {"origin": "acme/ragaudit/w2"},
        {"request": request_for(2, anchored=True)},
        {"openings": replace(OPENINGS, query="another question")},
    ],
)
def test_claims_that_the_provider_did_not_sign(known: Any, changes: Any) -> None:
    answer = claim(known, given=promise(known, **changes))
    assert answer.status_code == 422, answer.text
    assert "another question" not in answer.text


def test_answered_claims_do_not_keep_the_last_one_out(
    known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider has the nonce of every answered query, and its own signature on the promise."""
    monkeypatch.setattr(
        submissions, "LEAST_SHARE_BYTES", 2 * len(Claim(promise(known), bytes(32)).encode()) + 9
    )
    known.desk.service.intake._cap = 5 * submissions.LEAST_SHARE_BYTES
    for counter in range(3):
        assert claim(known, counter=counter).json() == {"accepted": 1, "known": 0}
    problem_of(claim(known, counter=0), 429, "cap-reached")  # its place was needed for the last one
    assert claim(known, counter=2).json() == {"accepted": 0, "known": 1}
    now = known.desk.clock.now
    assert claim(known, given=dated(known, now - 5), counter=1).status_code == 429
    assert claim(known, account=1).json() == {"accepted": 1, "known": 0}
    claimed = [Promise.from_json(each["promise"]).record for each in kept(known, "claim")]
    assert [each.counter for each in claimed if each.pseudonym == pseudonym(0)] == [1, 2]


def test_a_claim_that_is_too_long(known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    most = len(Claim(promise(known), bytes(32)).encode())
    monkeypatch.setattr(promises, "MAX_CLAIM_BYTES", most - 1)
    with pytest.raises(RefusedError):
        Claim(promise(known), bytes(32)).encode()
    given, nonce = promise(known), nonce_chain(0).nonce(1)
    document = {"promise": given.to_json(), "nonce": nonce.hex()}
    problem_of(post(known, "claims", document), 422, "rejected")
    monkeypatch.setattr(promises, "MAX_CLAIM_BYTES", most)
    assert post(known, "claims", document).status_code == 200


def test_each_slot_has_its_share(desk: Any) -> None:
    most = desk.settings.limits.submitted_bytes // submissions.LEAST_SHARE_BYTES - 1
    document = problem_of(desk.register(slots=most + 1), 422, "rejected")
    assert (document["where"], document["expected"]) == ("policy/slots", f"at most {most}")
    assert desk.register(slots=most).status_code == 201


def test_an_account_has_a_share_that_others_cannot_fill(tmp_path: Path, auditor: Any) -> None:
    """The provider signs refusals to pseudonyms that it invents; a real account has room left."""
    desk = Desk(tmp_path, auditor)
    with desk.running():
        desk.open_window()
        story = Story(desk)
        give_entries(story)
        slots = desk.policy()["slots"]
        share = submissions.share(desk.settings.limits.submitted_bytes, slots)
        assert share * slots <= desk.settings.limits.submitted_bytes
        desk.service.intake._cap = (slots + 1) * submissions.LEAST_SHARE_BYTES
        size = len(refusal(story).encode())
        many = submissions.LEAST_SHARE_BYTES // size
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
    again = replace(first, signature=another_signature(story.desk.provider_key, "receipt", *fields))
    again.verify(story.desk.provider_key.public)
    assert submit(story, first, again).json() == {"accepted": 1, "known": 1}


def test_a_third_receipt_for_one_record_proves_nothing_more(story: Any) -> None:
    many = [story.receipt(3, issued=n) for n in range(4)]
    assert submit(story, *many).json() == {"accepted": 2, "known": 2}
