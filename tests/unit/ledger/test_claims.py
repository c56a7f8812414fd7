"""The two claims of a verdict, as they follow from its checks (docs/spec/10-verdict.md §10.6)."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.verdict import (
    CONDITIONAL,
    CONDITIONS,
    EXCEEDED,
    FAIL,
    MAY_BE_OPEN,
    NOT_CLAIMED,
    PASS,
    PRIVACY_CHECKS,
    REFUSED,
    Claims,
    MalformedVerdict,
    Predicate,
    SignedCheck,
    Status,
)
from ragaudit.verifier.procedure import CHECKS, OPENING_CHECKS

IDS = [check.id for check in CHECKS]
NOISED = dict.fromkeys(IDS, Status.PASS)
UNNOISED = {
    name: Status.NOT_APPLICABLE if name in {*PRIVACY_CHECKS, "promises"} else Status.PASS
    for name in IDS
}
BROKEN = [Status.FAIL, Status.NOT_RUN]


def test_a_window_with_noise_claims_both() -> None:
    claims = Claims.of(NOISED)
    assert (claims.integrity, claims.privacy, claims.result) == (PASS, PASS, PASS)


def test_a_window_without_noise_claims_integrity_alone() -> None:
    claims = Claims.of(UNNOISED)
    assert (claims.integrity, claims.privacy, claims.result) == (PASS, NOT_CLAIMED, PASS)
    assert claims.statements[1].startswith("No epsilon is claimed")


@for_each("status", BROKEN)
@for_each("name", [name for name in IDS if name not in PRIVACY_CHECKS])
def test_no_privacy_without_integrity(name: str, status: Status) -> None:
    claims = Claims.of({**NOISED, name: status})
    assert (claims.integrity, claims.privacy, claims.result) == (FAIL, FAIL, FAIL)
    claims = Claims.of({**UNNOISED, name: status})
    assert (claims.integrity, claims.privacy, claims.result) == (FAIL, NOT_CLAIMED, FAIL)


@for_each("status", [*BROKEN, Status.NOT_ESTABLISHED, Status.NOT_APPLICABLE])
@for_each("name", PRIVACY_CHECKS)
def test_each_check_of_noise_carries_privacy_and_not_integrity(name: str, status: Status) -> None:
    claims = Claims.of({**NOISED, name: status})
    assert (claims.integrity, claims.privacy, claims.result) == (PASS, FAIL, FAIL)


def test_a_check_that_is_said_not_to_apply_is_a_failure() -> None:
    for name in IDS:
        if name not in PRIVACY_CHECKS:
            assert Claims.of({**NOISED, name: Status.NOT_APPLICABLE}).result == FAIL
            if name != "promises":
                assert Claims.of({**UNNOISED, name: Status.NOT_APPLICABLE}).result == FAIL


def test_only_few_checks_may_be_not_established() -> None:
    for name in IDS:
        result = Claims.of({**NOISED, name: Status.NOT_ESTABLISHED}).result
        due = CONDITIONAL if name in CONDITIONS else FAIL
        open_to = {"embedding", "cosigners", "time-stamps", "rows"}
        assert result == (PASS if name in open_to else due)


def test_what_is_open_stands_in_the_statement_whatever_the_result() -> None:
    said = Claims.of(NOISED).statements[0]
    for name in MAY_BE_OPEN:
        for others in ({}, {"coalition": Status.EXCEEDED}, {"replay": Status.NOT_ESTABLISHED}):
            claims = Claims.of({**NOISED, **others, name: Status.NOT_ESTABLISHED})
            statement = claims.statements[0]
            assert statement.startswith(f"{said} That "), name
            assert f"not established (check {name})" in statement
            assert Claims.from_json(claims.to_json()) == claims
            lies: list[dict[str, Any]] = [{"statement": said}, {"open": []}, {"open": [name, name]}]
            for hidden in lies:
                value = claims.to_json()
                value["integrity"] |= hidden
                with pytest.raises(MalformedError):
                    Claims.from_json(value)


def test_integrity_says_in_the_same_sentence_what_it_is_not_about() -> None:
    (sentence,) = Claims.of(UNNOISED).statements[0].split(". ")
    assert "the committed index" in sentence
    assert "the documents as their owner gave them" in sentence
    assert "withheld" in sentence


def test_what_was_not_computed_again_makes_privacy_conditional() -> None:
    for name in CONDITIONS:
        conditional = {**NOISED, name: Status.NOT_ESTABLISHED}
        claims = Claims.of(conditional)
        assert (claims.integrity, claims.privacy, claims.result) == (PASS, CONDITIONAL, CONDITIONAL)
        assert "the provider's word" in claims.statements[1]
        assert Claims.from_json(claims.to_json()) == claims
        # Nothing else becomes better by it, and a false one is no open one.
        exceeded = Claims.of({**conditional, "coalition": Status.EXCEEDED})
        assert (exceeded.privacy, exceeded.result, exceeded.open) == (EXCEEDED, EXCEEDED, (name,))
        alone = Claims.of({**NOISED, "coalition": Status.EXCEEDED}).statements[1]
        assert exceeded.statements[1] == f"{alone} {claims.statements[1]}", "one hides the other"
        assert Claims.from_json(exceeded.to_json()) == exceeded
        assert Claims.of({**conditional, "charges": Status.FAIL}).result == FAIL
        assert Claims.of({**NOISED, name: Status.FAIL}).result == FAIL


def test_a_coalition_beyond_the_plan_exceeds_privacy_alone() -> None:
    claims = Claims.of({**NOISED, "coalition": Status.EXCEEDED})
    assert (claims.integrity, claims.privacy, claims.result) == (PASS, EXCEEDED, EXCEEDED)
    assert Claims.of({**NOISED, "coalition": Status.EXCEEDED, "log": Status.FAIL}).result == FAIL


def test_no_statuses_without_noise_give_privacy() -> None:
    # Every combination of what four checks may say while one of them does not apply.
    for statuses in product(Status, repeat=4):
        if Status.NOT_APPLICABLE in statuses:
            claims = Claims.of({**NOISED, **dict(zip(PRIVACY_CHECKS, statuses, strict=True))})
            assert claims.privacy in {FAIL, NOT_CLAIMED}


def test_a_refusal_claims_nothing() -> None:
    opening = {check.id: Status.PASS for check in OPENING_CHECKS} | {"policy": Status.FAIL}
    claims = Claims.of(opening, refused=True)
    assert (claims.integrity, claims.privacy, claims.result) == (REFUSED, REFUSED, REFUSED)
    unnoised = {**opening, "accounting": Status.NOT_APPLICABLE}
    assert Claims.of(unnoised, refused=True).privacy == NOT_CLAIMED


@pytest.mark.parametrize("statuses", [NOISED, UNNOISED])
def test_claims_round_trip(statuses: dict[str, Status]) -> None:
    claims = Claims.of(statuses)
    assert Claims.from_json(claims.to_json()) == claims


def _predicate(statuses: dict[str, Status], claims: Claims) -> Predicate:
    checks = tuple(
        SignedCheck(number, name, status, "", ())
        for number, (name, status) in enumerate(statuses.items(), 1)
    )
    return Predicate(
        "w1",
        "rag.example",
        claims.result,
        False,
        "",
        1,
        "core",
        checks,
        {},
        {},
        {},
        {},
        {},
        (),
        (),
        claims,
    )


def test_a_verdict_states_what_its_checks_give() -> None:
    honest = _predicate(UNNOISED, Claims.of(UNNOISED))
    assert Predicate.from_json(honest.to_json()) == honest
    for integrity, privacy in ((PASS, PASS), (FAIL, NOT_CLAIMED), (PASS, EXCEEDED), (PASS, FAIL)):
        forged = replace(honest, claims=Claims(integrity, privacy))
        with pytest.raises(MalformedVerdict, match="do not follow"):
            Predicate.from_json(forged.to_json())
    with pytest.raises(MalformedVerdict, match="does not follow"):
        Predicate.from_json(replace(honest, result=EXCEEDED).to_json())


def test_a_repeated_check_cannot_hide_a_failed_one() -> None:
    honest = _predicate(NOISED, Claims.of(NOISED))
    failed = replace(honest.checks[0], status=Status.FAIL)
    with pytest.raises(MalformedVerdict, match="do not follow"):
        Predicate.from_json(replace(honest, checks=(failed, *honest.checks)).to_json())


@pytest.mark.parametrize(
    "change",
    [
        {"integrity": {"result": PASS, "statement": "All is well."}},
        {"privacy": {"result": "UNKNOWN", "statement": ""}},
        {"privacy": None},
        {"more": 1},
    ],
)
def test_other_claims_are_malformed(change: dict[str, Any]) -> None:
    value = _predicate(UNNOISED, Claims.of(UNNOISED)).to_json()
    value["claims"] |= change
    with pytest.raises(MalformedVerdict):
        Predicate.from_json(value)
