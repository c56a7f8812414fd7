"""Cheats in records and in what accounts hold (checks 9 to 15)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest
from procedure_cases import assert_caught, audit, use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.tagged import decode, enc
from ragaudit.encoding.text import b64_decode, b64_encode, rfc3339
from ragaudit.ledger.messages.disputes import Dispute, Finding, file_digest
from ragaudit.ledger.messages.promises import Promise
from ragaudit.ledger.messages.receipt_check import WindowView
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.records import Close, Epoch, Record, Registration, Version
from ragaudit.verifier import evidence as names
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure import Status
from ragaudit.verifier.procedure.statement_checks import judge
from window import END, START, Account, Asked, Window

use_cached_table()


class AltersRecord(Window):
    """The second record of bob, who is plain."""

    name, number = "bob", 1

    def changed(self, record: Record) -> Record:
        return record

    def alter_record(self, account: Account, record: Record) -> Record:
        chosen = account.name == self.name and account.queries == self.number
        return self.changed(record) if chosen else record


def altering(name: str = "bob", number: int = 1, **changes: Any) -> Window:
    class Altered(AltersRecord):
        def changed(self, record: Record) -> Record:
            return replace(record, **changes)

    Altered.name, Altered.number = name, number
    return Altered()


def ms(seconds: int) -> int:
    return 1000 * (START + seconds)


# --- 9: schedule --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (altering(version=2), "version 2, epoch 1"),
        (altering(epoch=2), "version 1, epoch 2"),
        # carol was activated at t_1; noise of another activation would be a second draw.
        (altering("carol", 1, activation=2), "activation 2 .expected 1"),
        (altering("dora", 0, activation=1), "activation 1 .expected 2"),
        (altering("dora", 0, activation=3), "activation 3 .expected 2"),
        (altering(time=ms(-1)), "outside the window"),
        (altering(time=1000 * END), "outside the window"),
        # Two checkpoints bracket each record: at 20 s without it, at 42 s with it.
        (altering(time=ms(48)), "it was in the log before"),
        (altering(time=ms(14)), "it was not in the log then"),
    ],
)
def test_records_out_of_their_time(window: Window, reason: str) -> None:
    assert_caught(window.items(), window, "schedule", reason)


def test_an_anchored_record_may_be_as_old_as_its_promise() -> None:
    window = altering("alice", 2, time=ms(18))
    assert audit(window.items(), window).result == "PASS"
    window = altering("alice", 2, time=ms(-5))
    assert_caught(window.items(), window, "schedule", "outside the window")


class Confirms(Window):
    """bob's second query, made at 30 s and covered by a checkpoint at ``covered``."""

    covered = 42

    def script(self) -> list[tuple[Any, ...]]:
        return [
            *(event for event in super().script() if event[-1] < 40),
            ("checkpoint", self.covered),
        ]


@pytest.mark.parametrize(("covered", "late"), [(65, False), (66, True)])
def test_a_checkpoint_covers_a_record_within_the_merge_delay(covered: int, late: bool) -> None:
    """30 s, a merge delay of 30 s and a skew of 5 s."""
    window = Confirms()
    window.covered = covered
    if late:
        assert_caught(window.items(), window, "schedule", "no checkpoint covered it until")
    else:
        assert audit(window.items(), window).result == "PASS"


class RegistersAt(Window):
    """The provider's clock at dora's registration, which happens at 15 s."""

    at = 15

    def alter_registration(self, account: Account, body: Registration) -> Registration:
        return replace(body, time=ms(self.at)) if account.name == "dora" else body


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (2, ""),  # a checkpoint without it at 7 s, and the skew
        (1, "it was not in the log then"),
        (25, ""),  # the one with it at 20 s
        (26, "it was in the log before"),
    ],
)
def test_the_time_of_a_registration(at: int, reason: str) -> None:
    window = RegistersAt()
    window.at = at
    if reason:
        assert_caught(window.items(), window, "schedule", f"registration 7: .*{reason}")
    else:
        assert audit(window.items(), window).result == "PASS"


class ClosesAt(Window):
    """The provider's clock at the close, which happens at 120 s and is cosigned at 121 s."""

    at = 120

    def alter_close(self, body: Close) -> Close:
        return replace(body, time=ms(self.at))


@pytest.mark.parametrize(
    ("at", "reason"), [(115, ""), (114, "before the window's end"), (126, ""), (127, "before")]
)
def test_the_time_of_the_close(at: int, reason: str) -> None:
    window = ClosesAt()
    window.at = at
    if reason:
        assert_caught(window.items(), window, "schedule", f"close: .*{reason}")
    else:
        assert audit(window.items(), window).result == "PASS"


class ClaimedAt(Window):
    """alice's promise of 60 s, claimed at ``taken`` and never kept."""

    taken = 60

    def close(self) -> None:
        chain = self.accounts["alice"].chain
        assert chain is not None
        self.claim(self.promise("alice", "a fourth question", 3, 60), chain.nonce(3), self.taken)
        super().close()


@pytest.mark.parametrize(
    ("taken", "reason"),
    [(54, "claimed at"), (55, "no record keeps it"), (85, "no record keeps it"), (86, "")],
)
def test_a_claim_binds_from_the_promise_on_for_as_long_as_it_lives(taken: int, reason: str) -> None:
    """60 s, a life of 20 s and a skew of 5 s on either side."""
    window = ClaimedAt()
    window.taken = taken
    items = window.items()
    if reason:
        assert_caught(items, window, "promises", reason)
    else:
        outcome = audit(items, window)
        assert outcome.result == "PASS"
        assert "had expired" in str(outcome.check("promises").evidence)


class ClockForgetsAClaim(ClaimedAt):
    def claim(self, *arguments: Any) -> None:
        super().claim(*arguments)
        self.claimed.clear()


def test_a_claim_without_a_time_of_intake() -> None:
    window = ClockForgetsAClaim()
    outcome = audit(window.items(), window)
    assert outcome.failed == ("sampling",)
    assert "no time of intake" in outcome.check("sampling").reason
    assert outcome.check("promises").needs == ("sampling",)


class GoesBack(Window):
    """bob's queries are logged in one order and dated in another, all between two checkpoints."""

    def script(self) -> list[tuple[Any, ...]]:
        script = super().script()
        at = script.index(("query", "bob", "second question of bob", 3, 30))
        return [*script[: at + 1], ("query", "bob", "third question", 1, 24), *script[at + 1 :]]


def test_an_account_whose_time_goes_back() -> None:
    window = GoesBack()
    assert_caught(window.items(), window, "schedule", "earlier than the account's record before")


class TooEarly(Window):
    """dora is answered before the instant that activates her registration."""

    def script(self) -> list[tuple[Any, ...]]:
        script = [e for e in super().script() if e[:2] != ("query", "dora")]
        at = next(i for i, e in enumerate(script) if e == ("checkpoint", 42))
        return [*script[:at], ("query", "dora", "early", 3, 41), *script[at:]]


def test_an_answer_before_the_activation() -> None:
    window = TooEarly()
    assert_caught(window.items(), window, "schedule", f"expected {rfc3339(ms(60))} or later")


class NeverActivated(Window):
    """eve registers after the last instant that activates anything."""

    def script(self) -> list[tuple[Any, ...]]:
        late = [("register", "eve", "acme", False, 82), ("query", "eve", "late", 1, 83)]
        return [*super().script(), *late]


def test_an_account_that_was_never_activated() -> None:
    window = NeverActivated()
    assert_caught(window.items(), window, "schedule", "never activated")


class NeverRegistered(Window):
    """An account without any registration: its slot and tenant are the provider's choice."""

    def register(self, name: str, *arguments: Any) -> None:
        super().register(name, *arguments)
        if name == "dora":
            self.dropped = self.entries.pop()
            self.tree = type(self.tree)()
            for kind, salt, body in self.entries:
                self.tree.append(structure("leaf", salt, kind, body))

    def promised(self, account: Account, *arguments: Any) -> Record:
        if account.name != "dora":
            return super().promised(account, *arguments)
        self.entries.append(self.dropped)
        try:
            return super().promised(account, *arguments)
        finally:
            self.entries.pop()


def test_an_account_that_was_never_registered() -> None:
    window = NeverRegistered()
    outcome = assert_caught(window.items(), window, "schedule", "was never registered")
    assert outcome.check("containment").needs == ("schedule",)


class RegistersAfterwards(Window):
    """dora's registration stands behind her first record."""

    def script(self) -> list[tuple[Any, ...]]:
        script = super().script()
        at = next(i for i, e in enumerate(script) if e[:2] == ("register", "dora"))
        return [*script[:at], ("early", "dora"), *script[at:]]

    def early(self, name: str) -> None:
        self.register(name, "beta", True, 15)
        entry = self.entries.pop()
        asked = self.answer_unregistered(name, entry)
        self.tree = type(self.tree)()
        for kind, salt, body in self.entries:
            self.tree.append(structure("leaf", salt, kind, body))
        self.log_record(asked)
        self.accounts[name].queries += 1
        self.entries.append(entry)
        kind, salt, body = entry
        self.tree.append(structure("leaf", salt, kind, body))

    def answer_unregistered(self, name: str, entry: tuple[str, bytes, bytes]) -> Asked:
        self.entries.append(entry)
        asked = self.answer(self.accounts[name], "before her time", 1, ms(14))
        self.entries.pop()
        return asked

    def register(self, name: str, *arguments: Any) -> None:
        if name not in self.accounts:
            super().register(name, *arguments)


def test_a_registration_behind_its_record() -> None:
    window = RegistersAfterwards()
    assert_caught(window.items(), window, "schedule", "before its account's registration")


class ChangesIndex(Window):
    def close(self) -> None:
        body = Version(self.window, "acme", 2, 20, b"r" * 32, b"p" * 32, ms(90))
        self.append("version", body.encode())
        super().close()


class ChangesSeed(Window):
    def close(self) -> None:
        self.append("epoch", Epoch(self.window, 2, b"s" * 32, "restored", ms(90)).encode())
        super().close()


@pytest.mark.parametrize(
    ("cheat", "reason"), [(ChangesIndex, "a version entry"), (ChangesSeed, "an? epoch entry")]
)
def test_changes_after_the_opening(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "schedule", reason)


# --- 10: containment ----------------------------------------------------------------------


class ServesAnotherTenant(AltersRecord):
    """bob of acme is answered from beta's index, and the record says so."""

    def changed(self, record: Record) -> Record:
        return replace(record, tenant="beta")

    def served_tenant(self, account: Account) -> str:
        return "beta" if account.name == "bob" and account.queries == 1 else account.tenant


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (altering(policy_digest=b"p" * 32), "another policy or window"),
        (altering(window="w2"), "another policy or window"),
        (altering(rows=19), "N is 19"),
        (altering(top_k=4), "K is 4, at most 3"),
        (ServesAnotherTenant(), "tenant beta .expected acme"),
    ],
)
def test_records_that_leave_their_place(window: Window, reason: str) -> None:
    assert_caught(window.items(), window, "containment", reason)


class EagerProof(AltersRecord):
    def encode_record(self, record: Record) -> bytes:
        fields = decode("ragaudit/v1/entry/record", record.encode(), 19)
        return enc("ragaudit/v1/entry/record", *fields[:-1], b"d" * 32)

    def receipts(self) -> list[dict[str, Any]]:
        return []


def test_a_record_with_an_eager_proof() -> None:
    window = EagerProof()
    assert_caught(window.items(), window, "containment", "eager proof")


# --- 11: nonces ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        # P draws without the client's share: the noise is its own choice again.
        (altering("alice", 1, nonce=None), "without a nonce"),
        (altering("alice", 1, nonce=b"n" * 32), "not the chain's nonce"),
        (altering("bob", 1, nonce=b"n" * 32, selection_commitment=b"c" * 32), "plain account"),
    ],
)
def test_nonces(window: Window, reason: str) -> None:
    assert_caught(window.items(), window, "nonces", reason)


# --- 12: promises -------------------------------------------------------------------------


class KeepsPromises(Window):
    def close(self) -> None:
        for asked in self.asked:
            chain = asked.account.chain
            if chain is not None:
                self.claim(self.promise_of(asked), chain.nonce(asked.record.counter))
        super().close()


class DropsAPromise(Window):
    """P saw the noise that the revealed nonce gives, and "crashed"."""

    def close(self) -> None:
        chain = self.accounts["alice"].chain
        assert chain is not None
        self.claim(self.promise("alice", "a fourth question", 3, 85), chain.nonce(3))
        super().close()


class BreaksAPromise(Window):
    """The record of the same query has another K than the one promised."""

    def close(self) -> None:
        asked = next(a for a in self.asked if a.account.name == "alice")
        chain = asked.account.chain
        assert chain is not None
        other = replace(asked.record.promised(), top_k=2)
        request = replace(asked.request, top_k=2)
        promise = Promise.issue(
            self.provider_key,
            origin=self.origin,
            body=other.encode(),
            request=request,
            openings=asked.openings,
        )
        self.claim(promise, chain.nonce(0))
        super().close()


class PromisesTwice(Window):
    """Two promises for one counter: the account reveals its nonce for either."""

    def close(self) -> None:
        asked = next(a for a in self.asked if a.account.name == "alice")
        chain = asked.account.chain
        assert chain is not None
        self.claim(self.promise_of(asked), chain.nonce(0))
        account = self.accounts["alice"]
        account.queries, kept = 0, account.queries
        self.claim(self.promise("alice", "another text", 3, 1), b"not revealed for this".ljust(32))
        account.queries = kept
        super().close()


class KeepsAPromiseLate(Window):
    """The nonce was handed to the verifier, and the record is logged when the window ends."""

    claims_it = True

    def close(self) -> None:
        asked = self.query("alice", "answered by nobody at the time", 3, 45)
        if self.claims_it:
            assert asked.account.chain is not None
            self.claim(self.promise_of(asked), asked.account.chain.nonce(3))
        super().close()


class LogsLateUnasked(KeepsAPromiseLate):
    claims_it = False


def test_a_claimed_promise_may_be_kept_late() -> None:
    window = KeepsAPromiseLate()
    outcome = audit(window.items(), window)
    assert outcome.result == "PASS", [each for each in outcome.checks if each.status != "PASS"]


def test_only_a_claim_excuses_a_late_record() -> None:
    window = LogsLateUnasked()
    assert_caught(window.items(), window, "schedule", "was not in the log then")


def test_promises_that_are_kept() -> None:
    window = KeepsPromises()
    outcome = audit(window.items(), window)
    assert outcome.result == "PASS"
    assert "4 revealed promises" in outcome.check("promises").reason


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (DropsAPromise, "no record keeps it"),
        (BreaksAPromise, "the record contradicts it"),
        (PromisesTwice, "another promise was signed"),
    ],
)
def test_promises(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "promises", reason)


class FalseClaims(Window):
    """What accounts can submit against an honest provider."""

    def close(self) -> None:
        alice, bob = self.accounts["alice"], self.accounts["bob"]
        assert alice.chain is not None
        unkept = self.promise("alice", "never asked", 1, 85)
        self.claim(unkept, b"x" * 32)  # the nonce was never revealed
        forged = replace(unkept, signature=bytes(64))
        self.claim(forged, alice.chain.nonce(3))
        self.claim(replace(unkept, origin="other.example/ragaudit/w1"), alice.chain.nonce(3))
        self.claim(self.promise("bob", "bob is plain", 1, 85), b"x" * 32)
        self.claims += [{"promise": {}, "nonce": ""}, {"nonce": 1}, {}, {"x": None}]
        assert bob.chain is None
        super().close()


def test_claims_that_prove_nothing() -> None:
    window = FalseClaims()
    assert audit(window.items(), window).result == "PASS"


# --- 13: receipts -------------------------------------------------------------------------


class SignsWhatItDoesNotLog(Window):
    """One account holds a receipt for a record that the final log does not have."""

    def receipts(self) -> list[dict[str, Any]]:
        asked = replace(self.asked[0], body=self.asked[1].body)
        return [self.receipt_file(asked).public.to_json(), *super().receipts()[1:]]


class SignsBeyondTheLog(Window):
    def receipts(self) -> list[dict[str, Any]]:
        asked = replace(self.asked[0], index=99)
        return [*super().receipts(), self.receipt_file(asked).public.to_json()]


class SignsTwoAnswers(Window):
    def receipts(self) -> list[dict[str, Any]]:
        again = self.receipt_file(self.asked[0]).public.to_json()
        return [*super().receipts(), again]


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (SignsWhatItDoesNotLog, "record 4: signed for a record that is not in the log"),
        (SignsBeyondTheLog, "record 99: signed for a record that is not in the log"),
        (SignsTwoAnswers, "two different receipts"),
    ],
)
def test_receipts(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "receipts", reason)


class ForgedReceipts(Window):
    def receipts(self) -> list[dict[str, Any]]:
        honest = super().receipts()
        forged = PublicReceipt.issue(
            PrivateKey.from_seed(b"f" * 32),
            origin=self.origin,
            index=5,
            salt=b"s" * 32,
            body=self.asked[0].body,
            issued=1,
            answer_digest=b"a" * 32,
        )
        self.forged: list[Any] = [forged.to_json(), {}, None, [], {"format": 1}]
        return honest


def test_receipts_that_the_provider_did_not_sign() -> None:
    window = ForgedReceipts()
    items = window.items()
    listed = canonical_json.loads(items[names.RECEIPTS])
    items[names.RECEIPTS] = canonical_json.dumps([*listed, *window.forged])
    assert audit(items, window).result == "PASS"


# --- 14: refusals -------------------------------------------------------------------------


class RefusesEarly(Window):
    def close(self) -> None:
        self.refuse("bob", 2, "budget", 85)
        super().close()


class RefusesWithFalseCount(Window):
    def close(self) -> None:
        self.refuse("bob", 4, "budget", 85)
        super().close()


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (RefusesEarly, "refused after 2 records"),
        (RefusesWithFalseCount, "counts 4 queries .expected 2"),
    ],
)
def test_refusals(cheat: type[Window], reason: str) -> None:
    window = cheat()
    assert_caught(window.items(), window, "refusals", reason)


class RefusesHonestly(Window):
    def script(self) -> list[tuple[Any, ...]]:
        more = [("query", "bob", f"bob again {i}", 1, 82 + i) for i in range(2)]
        return [*super().script(), *more, ("checkpoint", 90)]

    def close(self) -> None:
        self.refuse("bob", 4, "budget", 85)
        self.refuse("alice", 3, "unavailable", 86)
        self.refusals += [
            {**self.refusals[0], "counter": 0},  # not what the provider signed
            {},
            None,  # type: ignore[list-item]
        ]
        super().close()


def test_refusals_that_contradict_nothing() -> None:
    window = RefusesHonestly()
    outcome = audit(window.items(), window)
    assert outcome.result == "PASS"
    assert outcome.check("refusals").reason.startswith("2 refusals")


# --- 15: disputes -------------------------------------------------------------------------


class Disputed(Window):
    """bob complains about his second answer, and shows the verifier its file."""

    def disputes(self) -> list[dict[str, Any]]:
        assert self.asked[4].account.name == "bob"
        return [self.kept(self.receipt_file(self.asked[4]).to_json())]

    def kept(self, file: dict[str, Any]) -> dict[str, Any]:
        self.halves.append({**file["public"], "proof": None})
        return self.dispute(self.asked[4], file, file=file, step=1)

    @cached_property
    def halves(self) -> list[dict[str, Any]]:
        return []

    def judged(self) -> list[dict[str, Any]]:
        return self.halves


def resigned(window: Window, value: dict[str, Any]) -> dict[str, Any]:
    """The provider signs whatever stands in a receipt file."""
    parts = [canonical_json.dumps(value[name]) for name in ("request", "answer", "private")]
    digest = structure("answer", bytes.fromhex(value["private"]["salt_r"]), *parts)
    public = PublicReceipt.from_json(value["public"])
    signed = PublicReceipt.issue(
        window.provider_key,
        origin=public.origin,
        index=public.index,
        salt=public.salt,
        body=public.body,
        issued=public.issued,
        answer_digest=digest,
    )
    return {**value, "public": signed.to_json()}


def other_document(value: dict[str, Any]) -> None:
    value["answer"]["documents"][0]["content"] = "something else"


def other_text_in_both(value: dict[str, Any]) -> None:
    value["answer"]["documents"][0]["content"] = "something else"
    value["private"]["rows"][0]["content"] = "something else"


def one_document_less(value: dict[str, Any]) -> None:
    value["answer"]["documents"].pop()


def not_what_was_selected(value: dict[str, Any]) -> None:
    value["private"]["selected"].pop()
    value["private"]["rows"].pop()
    value["answer"]["documents"].pop()


def ordered_by_score(value: dict[str, Any]) -> None:
    value["answer"]["documents"].reverse()


def other_vector(value: dict[str, Any]) -> None:
    row = value["private"]["rows"][0]
    entries = b64_decode(row["vector"])
    row["vector"] = b64_encode(entries[2:4] + entries[:2] + entries[4:])


def other_query(value: dict[str, Any]) -> None:
    value["request"]["query"] = value["private"]["query"] = "what nobody asked"


def other_k(value: dict[str, Any]) -> None:
    value["request"]["top_k"] = 2


def a_filter(value: dict[str, Any]) -> None:
    value["request"]["filter"] = value["private"]["filter"] = "year > 2000"


def other_sketch(value: dict[str, Any]) -> None:
    value["private"]["sketch"] = "ff" * 8


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (other_document, "step 7"),
        (other_text_in_both, "step 8"),
        (one_document_less, "step 7"),
        (not_what_was_selected, "step 6"),
        (ordered_by_score, "not rising"),
        (other_vector, "step 8"),
        (other_query, "step 5"),
        (other_k, "step 3"),
        (a_filter, "filters"),
        (other_sketch, "step 5"),
    ],
)
def test_disputes(spoil: Callable[[dict[str, Any]], None], reason: str) -> None:
    class Cheats(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            value = self.receipt_file(self.asked[4]).to_json()
            spoil(value)
            return [self.kept(resigned(self, value))]

    window = Cheats()
    assert_caught(window.items(), window, "disputes", reason)


def findings(window: Disputed, step: int, **changes: Any) -> list[dict[str, Any]]:
    """The same dispute, as the arbiter's finding about it."""
    file = window.receipt_file(window.asked[4]).to_json()
    public = PublicReceipt.from_json(file["public"])
    named: dict[str, Any] = {
        "origin": public.origin,
        "index": public.index,
        "answer_digest": public.answer_digest,
        "file_digest": file_digest(file),
        "step": step,
        "time": 5,
    }
    key = changes.pop("key", ARBITER)
    finding = Finding.issue(key, **{**named, **changes}).to_json()
    window.halves.append(public.to_json())
    return [window.dispute(window.asked[4], file, step=step, finding=finding)]


ARBITER = PrivateKey.from_seed(b"\xa7" * 32)
WITH_ARBITER = {"keys/arbiter": ARBITER.public.raw.hex()}


def test_what_the_arbiter_upholds_fails() -> None:
    class Cheats(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            return findings(self, 8)

    window = Cheats(overrides=WITH_ARBITER)
    assert_caught(window.items(), window, "disputes", "upheld by the arbiter: step 8")


def test_a_step_that_nothing_shows() -> None:
    class Cheats(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            file = self.receipt_file(self.asked[4]).to_json()
            return [self.dispute(self.asked[4], file, step=8)]

    window = Cheats()
    assert_caught(window.items(), window, "disputes", "step 8 is said to fail")


def test_what_the_arbiter_dismisses_changes_nothing() -> None:
    class Dismissed(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            return findings(self, 0)

    window = Dismissed(overrides=WITH_ARBITER)
    outcome = audit(window.items(), window)
    assert outcome.result == "PASS"
    assert outcome.check("disputes").reason == "1 disputes, 1 judged, none upheld"
    assert outcome.counts["disputes_open"] == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"key": PrivateKey.from_seed(b"\xa8" * 32)},
        {"index": 5},
        {"file_digest": bytes(32)},
        {"answer_digest": bytes(32)},
        {"origin": "rag.example/ragaudit/w2"},
    ],
)
def test_findings_that_are_not_the_arbiters_about_this_file(changes: dict[str, Any]) -> None:
    class Other(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            return findings(self, 0, **changes)

    window = Other(overrides=WITH_ARBITER)
    assert audit(window.items(), window).check("disputes").status is Status.FAIL


def test_a_window_without_an_arbiter_has_no_findings() -> None:
    class Unnamed(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            return findings(self, 8)

    window = Unnamed()
    outcome = audit(window.items(), window)
    assert outcome.check("disputes").status is Status.FAIL
    assert "names no arbiter" in outcome.check("disputes").reason


class DisputeAboutNothing(Disputed):
    """The public half of a judged file names a record that is not in the log at its place."""

    def disputes(self) -> list[dict[str, Any]]:
        return [self.kept(self.receipt_file(replace(self.asked[4], salt=bytes(32))).to_json())]


def test_a_disputed_file_is_a_receipt_like_any_other() -> None:
    window = DisputeAboutNothing()
    assert_caught(window.items(), window, "receipts", "not in the log at that place")


def test_a_dispute_that_is_not_upheld_changes_nothing() -> None:
    class Open(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            return [self.dispute(self.asked[4])]

    for window, unjudged in ((Disputed(), 0), (Open(), 1)):
        items = window.items()
        outcome = audit(items, window)
        assert outcome.result == "PASS"
        assert outcome.check("disputes").status is Status.PASS
        assert names.response_name(window.asked[4].index) in items
        assert (outcome.counts["disputes"], outcome.counts["disputes_open"]) == (1, unjudged)
        told = any("Disputes that nobody judged" in text for text in outcome.not_covered)
        assert told is bool(unjudged)


def test_only_the_account_disputes_its_record() -> None:
    """A provider that made every receipt file signs with what keys it likes."""

    class NotBob(Disputed):
        def disputes(self) -> list[dict[str, Any]]:
            value = self.receipt_file(self.asked[4]).to_json()
            other_document(value)
            kept = self.kept(resigned(self, value))
            disputes = []
            alice = self.accounts["alice"]
            for pseudonym, key in (
                (alice.pseudonym, alice.dispute_key),  # not her record
                (self.accounts["bob"].pseudonym, alice.dispute_key),  # not his key
                (bytes(32), alice.dispute_key),  # no account
            ):
                dispute = Dispute.issue(key, pseudonym=pseudonym, receipt_file=kept["file"])
                disputes.append({**kept, "dispute": dispute.to_json()})
            return disputes

    window = NotBob()
    outcome = audit(window.items(), window)
    assert outcome.check("disputes").status is Status.PASS
    assert len([each for each in outcome.check("disputes").evidence if "dismissed" in each]) == 3


@pytest.mark.parametrize(
    "spoil", [other_document, other_text_in_both, not_what_was_selected, other_k, other_sketch]
)
def test_nobody_can_frame_the_provider_with_a_receipt(
    spoil: Callable[[dict[str, Any]], None],
) -> None:
    """What an account changed in its own receipt file is not what the provider signed."""
    window = Window()
    window.items()
    value = window.receipt_file(window.asked[4]).to_json()
    spoil(value)
    with pytest.raises(RagauditError):
        judge(value, WindowView(window.policy, window.opening), engine("core"))


def test_a_mangled_proof_in_a_dispute_is_not_the_providers() -> None:
    window = Window()
    window.items()
    value = window.receipt_file(window.asked[4]).to_json()
    value["public"]["proof"] = "nonsense"
    judged = judge(value, WindowView(window.policy, window.opening), engine("core"))
    assert not judged.upheld
    assert judged.public.proof is None
