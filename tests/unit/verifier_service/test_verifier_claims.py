"""Claims on unanswered promises: what is taken, handed out, and needs a registration."""

from dataclasses import replace
from threading import Event, Thread
from typing import Any

import pytest
from databases import ON_EACH_ENGINE_SLOWLY
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import RefusedError
from ragaudit.lab.attacks.cheats.promises import another_signature
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.messages import promises
from ragaudit.ledger.messages.entries import Registration
from ragaudit.ledger.messages.promises import Claim, Promise
from ragaudit.verifier.service import intake, submissions
from service_submissions import BASE, give_entries, kept, post
from verifier_service_harness import (
    END,
    OPENINGS,
    ORIGIN,
    nonce_chain,
    problem_of,
    pseudonym,
    record,
    request_for,
)

pytestmark = ON_EACH_ENGINE_SLOWLY

EXPIRED_AFTER_SECONDS = 30 + 5  # promise life and clock skew of the harness's policy


def promise(story: Any, account: int = 0, counter: int = 1, **changes: Any) -> Promise:
    body = record(story.scenario, account, counter).promised().encode()
    fields = {
        "origin": story.scenario.log.key.name, "body": body,
        "request": request_for(counter, anchored=True), "openings": OPENINGS, **changes,
    }  # fmt: skip
    return Promise.issue(fields.pop("key", story.scenario.provider_key), **fields)


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
    assert answer.headers["retry-after"] == str(END - known.scenario.clock.now // 1000)
    known.scenario.clock.at(END)
    assert known.send("GET", "claims").json() == {"claims": [expected], "next": None}
    problem_of(claim(known, counter=2), 409, "too-late")


def dated(story: Any, made: Any, **changes: Any) -> Promise:
    body = replace(record(story.scenario, 0, 1).promised(), time=made).encode()
    return promise(story, body=body, **changes)


def test_a_claim_on_an_expired_promise(known: Any) -> None:
    now = known.scenario.clock.now
    last = dated(known, now - 1000 * EXPIRED_AFTER_SECONDS)
    problem_of(claim(known, given=dated(known, last.promised.time - 1)), 422, "rejected")
    assert claim(known, given=last).json() == {"accepted": 1, "known": 0}


def test_a_promise_that_is_dated_ahead_is_taken_as_evidence(known: Any) -> None:
    """The provider chose the time; to refuse the claim would be to let it choose."""
    for made in (known.scenario.clock.now + 10**7, 1000 * END - 1):
        assert claim(known, given=dated(known, made)).json() == {"accepted": 1, "known": 0}


def test_a_claim_is_one_whatever_else_is_in_it(known: Any) -> None:
    """Identity is what was promised: a salt that opens nothing else, or a signature, is not."""
    assert claim(known).json() == {"accepted": 1, "known": 0}
    again = resigned(promise(known), known.scenario.provider_key)
    assert again.signature != promise(known).signature
    again.verify(known.scenario.provider_key.public)
    assert claim(known, given=again).json() == {"accepted": 0, "known": 1}
    assert len(kept(known, "claim")) == 1


def resigned(given: Promise, key: Any) -> Promise:
    signature = another_signature(key, "promise", given.origin, given.body)
    return replace(given, signature=signature)


def test_two_promises_for_one_query_are_kept_and_no_third(known: Any) -> None:
    now = known.scenario.clock.now
    answers = [claim(known, given=dated(known, now - n)).json() for n in range(4)]
    assert [each["accepted"] for each in answers] == [1, 1, 0, 0]
    assert claim(known, counter=2).json() == {"accepted": 1, "known": 0}
    assert claim(known, account=1).json() == {"accepted": 1, "known": 0}


def test_a_claim_that_is_being_taken_is_handed_out(known: Any) -> None:
    """The race at the end: whatever was taken before it, the provider gets, or fails for it."""
    scenario, database = known.scenario, known.scenario.service.database
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
    scenario.clock.at(END)
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
    known.scenario.clock.at(END)
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
    made = known.scenario.clock.now
    path = f"claims/{pseudonym(0).hex()}/1?made={made}"
    answer = known.send("GET", path)
    problem_of(answer, 425, "too-early")
    assert answer.headers["retry-after"] == str(EXPIRED_AFTER_SECONDS + 1)
    known.scenario.clock.now = made + 1000 * EXPIRED_AFTER_SECONDS
    assert claim(known, given=dated(known, made)).status_code == 200  # its last millisecond
    problem_of(known.send("GET", path), 425, "too-early")
    known.scenario.clock.now += 1
    assert known.send("GET", path).json() == {"claimed": True}
    other = f"claims/{pseudonym(0).hex()}/2?made={made}"
    assert known.send("GET", other).json() == {"claimed": False}
    problem_of(claim(known, given=dated(known, made)), 422, "rejected")
    problem_of(known.scenario.client.get(f"{BASE}/{path}"), 401, "not-authenticated")
    for bad in ("claims/00/1?made=1", "claims/" + "0" * 64 + "/1", "claims/" + "0" * 64 + "/x"):
        assert known.send("GET", bad).status_code == 400


def test_claims_are_the_providers_to_read(known: Any) -> None:
    known.scenario.clock.at(END)
    problem_of(known.scenario.client.get(f"{BASE}/claims"), 401, "not-authenticated")


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
    bare = story.proof(1, story.scenario.log.checkpoint()).encode().decode()
    changed = Registration.parse(story.entries[1].body)
    foreign = replace(changed, window="w2").encode().hex()
    for changes in (
        {"proof": other},
        {"proof": bare},
        {"proof": "x"},
        {"proof": None},  # the prover's own form while there is no checkpoint
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
        {"openings": replace(OPENINGS, salt_q=b"o" * 32)},
    ],
)
def test_claims_that_the_provider_did_not_sign(known: Any, changes: Any) -> None:
    answer = claim(known, given=promise(known, **changes))
    assert answer.status_code == 422, answer.text


def test_answered_claims_do_not_keep_the_last_one_out(
    known: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider has the nonce of every answered query, and its own signature on the promise."""
    longest = len(Claim(promise(known), bytes(32)).encode()) + 4
    monkeypatch.setattr(promises, "MAX_CLAIM_BYTES", longest)
    known.scenario.service.intake._cap = 5 * 2 * longest
    for counter in range(3):
        assert claim(known, counter=counter).json() == {"accepted": 1, "known": 0}
    problem_of(claim(known, counter=0), 429, "cap-reached")  # its place was needed for the last one
    assert claim(known, counter=2).json() == {"accepted": 0, "known": 1}
    now = known.scenario.clock.now
    assert claim(known, given=dated(known, now - 5), counter=1).status_code == 429
    assert claim(known, account=1).json() == {"accepted": 1, "known": 0}
    claimed = [Promise.from_json(each["promise"]).promised for each in kept(known, "claim")]
    assert [each.counter for each in claimed if each.pseudonym == pseudonym(0)] == [1, 2]


def test_a_claim_that_is_too_long(known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    most = len(Claim(promise(known), bytes(32)).encode())
    monkeypatch.setattr(promises, "MAX_CLAIM_BYTES", most - 1)
    with pytest.raises(RefusedError):
        Claim(promise(known), bytes(32)).encode_within(4)
    given, nonce = promise(known), nonce_chain(0).nonce(1)
    document = {"promise": given.to_json(), "nonce": nonce.hex()}
    problem_of(post(known, "claims", document), 422, "rejected")
    monkeypatch.setattr(promises, "MAX_CLAIM_BYTES", most)
    assert post(known, "claims", document).status_code == 200
