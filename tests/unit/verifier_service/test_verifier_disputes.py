"""Disputes and statements through the service: what is taken, when, and what is never seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from complaining import SECRET, Arbitrated, Complaining, decided_late, disputed, played
from procedure_cases import use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.opening import Asked
from ragaudit.lab.scenario.policy import INSTANTS
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.disputes import RegistrationStatement
from ragaudit.ledger.messages.entries import Registration
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.verifier.service.database import Origin
from ragaudit.verifier.service.disputes import PER_ACCOUNT, PER_ANSWER, judged
from service_audit import decide, failed
from service_window import ServiceWindow
from sqlalchemy import text
from verifier_service_harness import VerifierScenario, problem_of


@pytest.fixture(autouse=True)
def quick() -> None:
    use_cached_table()


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[VerifierScenario]:
    with Arbitrated(tmp_path).running() as running:
        yield running


def stored_bytes(scenario: VerifierScenario) -> bytes:
    """Everything in the verifier's database."""
    with scenario.service.database.read() as connection:
        names = connection.execute(text("select name from sqlite_master where type = 'table'"))
        rows = [connection.execute(text(f"select * from {name}")).all() for (name,) in names]
    return repr(rows).encode()


def test_disputes_are_taken_by_digest_and_once(scenario: Any) -> None:
    window = played(scenario)
    asked = window.asked[4]
    dispute = window.dispute_of(asked, window.file(asked))
    assert window.add(dispute).json() == {"accepted": 1, "known": 0}
    resigned = replace(dispute, signature=dispute.signature)
    assert window.add(resigned, dispute).json() == {"accepted": 0, "known": 2}
    scenario.clock.at(INSTANTS[-1])
    problem_of(window.add(dispute), 409, "too-late")


def test_a_dispute_reads_its_own_accounts_registration_only(
    scenario: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request may name a thousand disputes, and a log half a million registrations."""
    window = played(scenario)
    read = []
    parse = Registration.parse
    monkeypatch.setattr(Registration, "parse", lambda body: read.append(body) or parse(body))  # type: ignore[func-returns-value]
    asked = window.asked[4]
    assert window.add(window.dispute_of(asked, window.file(asked))).json()["accepted"] == 1
    assert len(window.accounts) > 1
    assert {parse(body).pseudonym for body in read} == {asked.account.pseudonym}


def test_who_may_dispute(scenario: Any) -> None:
    window = played(scenario)
    asked, file = window.asked[4], window.file(window.asked[4])
    alice = window.accounts["alice"]
    for bad in (
        window.dispute_of(asked, file, key=alice.dispute_key),
        window.dispute_of(asked, file, pseudonym=bytes(32)),
        window.dispute_of(asked, file, origin="rag.example/ragaudit/w2"),
        replace(window.dispute_of(asked, file), index=3),
    ):
        assert (window.add(bad)).status_code == 422


def test_an_account_does_not_depend_on_the_provider_for_its_registration(scenario: Any) -> None:
    """A provider that hands registrations over late cannot keep disputes away."""

    class Withholds(Complaining):
        def register(self, name: str, tenant: str, anchored: bool, time: int) -> None:
            super(ServiceWindow, self).register(name, tenant, anchored, time)

    window = Withholds(scenario)
    window.play()
    asked = window.asked[4]
    dispute = window.dispute_of(asked, window.file(asked))
    assert window.add(dispute).status_code == 422
    own = (
        (index, salt, body)
        for index, (kind, salt, body) in enumerate(window.entries)
        if kind == "registration" and asked.account.pseudonym in body
    )
    index, salt, body = next(own)
    proof = {"index": index, "salt": salt.hex(), "body": body.hex()}
    proof["proof"] = window.proof_for(index).encode().decode()
    for change in (
        {"salt": "00" * 32},
        {"index": index + 1},
        {"body": body.hex().replace(body[-8:].hex(), "00" * 8)},
    ):
        assert window.add(dispute, registration={**proof, **change}).status_code == 422
    assert window.add(dispute, registration=proof).json() == {"accepted": 1, "known": 0}


def test_floods_end_at_the_accounts_quota(scenario: Any) -> None:
    """Ed25519 signatures are no identity, and a provider signs receipt files without end."""
    window = played(scenario)
    asked, file, taken = window.asked[4], window.file(window.asked[4]), 0
    for number in range(PER_ANSWER + 1):
        dispute = window.dispute_of(asked, file, file_digest=bytes([number]) * 32)
        taken += window.add(dispute).is_success
    assert taken == PER_ANSWER
    for number in range(PER_ACCOUNT):
        changed = {"answer_digest": bytes([number + 1]) * 32}
        taken += window.add(window.dispute_of(asked, file, **changed)).is_success
    assert taken == PER_ACCOUNT
    other = window.asked[0]
    assert other.account is not asked.account
    assert window.add(window.dispute_of(other, window.file(other))).is_success


def test_another_accounts_disputes_take_nobodys_place(scenario: Any) -> None:
    """The provider knows every answer digest and owns accounts of its own."""
    window = played(scenario)
    asked, file, alice = window.asked[4], window.file(window.asked[4]), window.accounts["alice"]
    for number in range(PER_ANSWER):
        sybil = window.dispute_of(asked, file, account=alice, file_digest=bytes([number]) * 32)
        assert window.add(sybil).is_success
    assert window.add(window.dispute_of(asked, file)).is_success


def test_no_file_before_the_draw(scenario: Any) -> None:
    window = played(scenario)
    asked = window.asked[4]
    window.add(window.dispute_of(asked, window.file(asked)))
    problem_of(window.show(asked), 425, "too-early")
    assert b"salt_r" not in stored_bytes(scenario)


def test_a_file_of_a_sampled_record_is_never_taken(scenario: Any) -> None:
    window = disputed(scenario, spoil=True)
    sampled, _ = window.split()
    assert "arbiter" in problem_of(window.show(sampled), 409, "conflict")["expected"]
    # Refused by its path: not even a body that is no file is read.
    url = f"/v1/windows/{window.window}/disputes/{sampled.index}/file"
    problem_of(scenario.client.put(url, content=b"\xff"), 409, "conflict")
    window.respond()
    assert SECRET.encode() not in stored_bytes(scenario)


@pytest.mark.parametrize(
    "order",
    [
        ("unsampled", "respond", "sampled", "restart", "sampled"),
        ("respond", "sampled", "restart", "unsampled", "stray"),
        ("sampled", "stray", "unsampled", "restart", "respond"),
    ],
    ids=" ".join,
)
def test_the_verifier_never_holds_noise_and_selection_of_one_record(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    """Whatever comes first: the key of a record, or its receipt file, or neither, never both."""
    first = Arbitrated(tmp_path)
    with first.running():
        window = disputed(first, spoil=True)
        sampled, unsampled = window.split()
        restart = order.index("restart")
        for event in order[:restart]:
            _happen(window, event, sampled, unsampled)
        now = first.clock.now
    again = Arbitrated(tmp_path)
    again.clock.now = now
    with again.running():
        again.provider, again.provider_key = first.provider, first.provider_key
        window.scenario = again
        for event in order[restart + 1 :]:
            _happen(window, event, sampled, unsampled)
        held = stored_bytes(again)
        assert f"{SECRET} {unsampled.index}.".encode() in held
        assert f"{SECRET} {sampled.index}.".encode() not in held
        assert names.response_name(sampled.index).encode() in held or "respond" not in order
        assert names.response_name(unsampled.index).encode() not in held


def _happen(window: Complaining, event: str, sampled: Asked, unsampled: Asked) -> None:
    if event == "respond":
        window.respond()
    elif event == "stray":  # the provider opens a key that nobody asked for
        path = f"/v1/windows/{window.window}/challenge/{unsampled.index}"
        answer = window.scenario.send("PUT", path, window.response(unsampled))
        assert answer.status_code == 404, answer.text
    elif event == "sampled":
        assert window.show(sampled).status_code == 409
    else:
        assert window.show(unsampled).json() == {"sampled": False, "step": 8}


def test_an_upheld_dispute_fails_the_window(scenario: Any) -> None:
    window = disputed(scenario, spoil=True)
    _, unsampled = window.split()
    for _ in range(2):
        assert window.show(unsampled).json() == {"sampled": False, "step": 8}
    verdict = decided_late(scenario, window)
    statuses = {check.id: check.status for check in verdict.predicate.checks}
    assert (verdict.result, statuses["disputes"]) == ("FAIL", "FAIL")
    assert verdict.predicate.counts["disputes"] == len(window.asked)
    assert verdict.predicate.counts["disputes_open"] == len(window.asked) - 1


def test_of_a_dismissed_dispute_nothing_is_kept_but_the_public_half(scenario: Any) -> None:
    window = disputed(scenario)
    _, unsampled = window.split()
    assert window.show(unsampled).json() == {"sampled": False, "step": 0}
    assert b"salt_r" not in stored_bytes(scenario)
    assert decided_late(scenario, window).result == "PASS"


def test_the_audit_waits_for_disputes_until_the_deadline_only(scenario: Any) -> None:
    window = disputed(scenario)
    sampled, unsampled = window.split()
    window.respond()
    scenario.service.scheduler.tick()
    assert scenario.client.get(f"/v1/windows/{window.window}").json()["state"] == "challenged"
    for asked in window.asked:
        step = window.finding(asked, 0)
        assert step.json() == {"accepted": 1, "known": 0}, step.text
    assert window.finding(sampled, 0).json() == {"accepted": 0, "known": 1}
    verdict = decide(scenario, window)
    assert verdict.result == "PASS"
    problem_of(window.show(unsampled), 409, "too-late")
    problem_of(window.finding(sampled, 0), 409, "too-late")


def test_the_arbiter_upholds_what_the_verifier_must_not_see(scenario: Any) -> None:
    window = disputed(scenario, spoil=True)
    sampled, _ = window.split()
    assert window.finding(sampled, 8).json() == {"accepted": 1, "known": 0}
    shown = scenario.client.get(f"/v1/windows/{window.window}/disputes/{sampled.index}").json()
    assert shown == {"sampled": True, "step": 8}
    assert failed(decided_late(scenario, window)) == ["disputes"]


def test_findings_are_the_arbiters_and_about_a_dispute(scenario: Any) -> None:
    window = disputed(scenario)
    asked = window.asked[4]
    assert (window.finding(asked, 8, key=window.provider_key)).status_code == 422
    problem_of(window.finding(asked, 8, file_digest=bytes(32)), 404, "not-found")
    assert (window.finding(asked, 8, index=asked.index + 1)).status_code == 422
    assert (window.finding(asked, 8, origin="rag.example/ragaudit/w2")).status_code == 422


def test_no_half_takes_the_place_of_another(scenario: Any) -> None:
    """Both are signed for one entry: whichever is brought last, check 13 has the two."""
    window = disputed(scenario)
    sampled, unsampled = window.split()
    assert window.finding(sampled, 0).status_code == 200  # with the half of the file
    for asked, more in ((sampled, 1), (sampled, 2), (unsampled, 1)):
        public = PublicReceipt.from_json(window.file(asked)["public"])
        other = PublicReceipt(origin=public.origin, index=public.index, salt=bytes(32),
            body=public.body, issued=public.issued + more, answer_digest=public.answer_digest,
        ).signed(window.provider_key)  # fmt: skip
        told = {"public": other.to_json(), **window.found(asked, 0)}
        assert window.raw("POST", "findings", told).status_code == 200
    assert window.show(unsampled).json() == {"sampled": False, "step": 0}
    with scenario.service.database.read() as connection:
        kept = list(map(canonical_json.loads, judged(connection, Origin(window.origin))))
    for asked in (sampled, unsampled):
        halves = [each for each in kept if each["index"] == asked.index]
        assert len(halves) == 2
        assert {**window.file(asked)["public"], "proof": None} in halves
    assert failed(decided_late(scenario, window)) == ["receipts"]


def test_files_that_nobody_disputed(scenario: Any) -> None:
    window = disputed(scenario)
    _, unsampled = window.split()
    honest = window.files[unsampled.index]
    window.files[unsampled.index] = {**honest, "request": {**honest["request"], "query": "another"}}
    problem_of(window.show(unsampled), 404, "not-found")
    problem_of(window.raw("PUT", "disputes/99/file", honest), 404, "not-found")


def test_statements_show_a_chain(scenario: Any) -> None:
    window = played(scenario)
    alice, bob = window.accounts["alice"], window.accounts["bob"]
    assert alice.chain is not None

    def state(account: Any, anchor: bytes | None, key: PrivateKey | None = None) -> Any:
        fields = {"origin": window.origin, "pseudonym": account.pseudonym, "anchor": anchor}
        made = RegistrationStatement(**fields).signed(key or account.dispute_key)
        return window.raw("POST", "statements", {"statement": made.to_json()})

    assert state(alice, alice.chain.anchor).json() == {"accepted": 1, "known": 0}
    assert state(alice, alice.chain.anchor).json() == {"accepted": 0, "known": 1}
    assert state(bob, None).json() == {"accepted": 1, "known": 0}
    assert (state(alice, bytes(32))).status_code == 422
    assert (state(alice, alice.chain.anchor, key=bob.dispute_key)).status_code == 422
    scenario.clock.at(INSTANTS[-1])
    problem_of(state(alice, alice.chain.anchor), 409, "too-late")
