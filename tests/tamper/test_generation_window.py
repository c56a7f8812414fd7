"""Whole windows with a generation channel: what is concluded of an honest one, how it is said."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from judged_windows import judged, open_checks, outcome_of, public, rechecked, signed, stated
from judged_windows import played as made_once
from procedure_cases import use_cached_table
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.scenario.generating import (
    AnchoredQuestions,
    Charged,
    CopyGenerator,
    GeneratingWindow,
    UnchargedWindow,
)
from ragaudit.lab.scenario.integrity import LEFT_SHELF
from ragaudit.lab.scenario.opening import Event
from ragaudit.lab.scenario.policy import SMALL_TERMS
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.challenge import Replay
from ragaudit.ledger.messages.manifests import EmbedderManifest, Vocabulary
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.verdict import Predicate, Status
from ragaudit.privacy.accounting.generation import ChannelEpsilon
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure.covered import ASSUMPTIONS, KNOWN_MODELS, UNLOGGED, VOIDED
from ragaudit.verifier.report import render_html, render_text
from ragaudit.verifier.terms import Terms

use_cached_table()


class Unreplayed(GeneratingWindow):
    """The policy has no answer replayed."""

    replayed = False


class OfSamples(GeneratingWindow):
    """Charge entries are sampled, and records too."""

    mode = "B"
    proving = "sampled"


class Naive(UnchargedWindow):
    """Every row pays for every question."""


class Filtered(GeneratingWindow):
    """A question is about some rows only."""

    def script(self) -> list[Event]:
        asked = ("charge", "alice", "treatment of bazeli ?", 1)
        return [(*each, LEFT_SHELF) if each == asked else each for each in super().script()]


class SurplusVotes(GeneratingWindow):
    """A replay with votes that no token came from."""

    def replay(self, asked: Charged) -> Replay:
        found = super().replay(asked)
        return replace(found, votes=(*found.votes, *found.votes[-1:]))


class AsksOneMore(UnchargedWindow):
    """A tenant has more questions than the policy allows."""

    uses = 2


class OtherWords(CopyGenerator):
    """A model with other tokens than the committed one."""

    vocabulary = Vocabulary(("a", "b"), 0)


def played(kind: type[GeneratingWindow]) -> tuple[GeneratingWindow, dict[str, bytes]]:
    window, items = made_once(kind)
    assert isinstance(window, GeneratingWindow)
    return window, items


def test_an_honest_window_passes_and_says_what_it_costs() -> None:
    outcome = outcome_of(GeneratingWindow)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    assert [check.number for check in outcome.checks] == [*range(1, 22), *range(26, 31)]
    found = outcome.generation
    assert found is not None
    # M = 2 uses of 10, whoever asks: three accounts did.
    assert [found.replace_one_null, found.replace_one, found.over(3)] == [20, 40, 60]
    window, _ = played(GeneratingWindow)
    # The rows that two questions used up are not there for the third.
    first, second, third = (each for each in window.charged if each.account.tenant == "acme")
    assert first.positions == second.positions != ()
    assert third.positions == ()


def test_the_verdict_says_which_models_the_verifier_knows_from_elsewhere() -> None:
    _, items = played(GeneratingWindow)
    assert outcome_of(GeneratingWindow).assumptions[-1] == ASSUMPTIONS[-1]
    policy = Policy.parse(items[names.POLICY])
    assert policy.generation is not None
    digests = {
        "the embedder": EmbedderManifest.parse(items[names.EMBEDDER]).digest().hex(),
        "the generator": policy.generation.generator.digest.hex(),
    }
    models = sorted([sha256(b"another").hexdigest(), *digests.values()])
    terms = Terms.of({**SMALL_TERMS.to_json(), "known_models": models})
    said = judged(GeneratingWindow(terms=terms)).assumptions[-1]
    assert said == f"{ASSUMPTIONS[-1]} {KNOWN_MODELS.format(' and '.join(digests))}"


def test_void_charges_are_counted_by_account_and_said() -> None:
    outcome = outcome_of(GeneratingWindow)
    window, _ = played(GeneratingWindow)
    names = ("voids", "voids_anchored", "voids_plain", "accounts_with_voids")
    assert [outcome.counts[name] for name in names] == [1, 0, 1, 1]
    voided = window.charged[2].charge.pseudonym
    assert outcome.check("answers").evidence == (
        f"1 of 1 charges of account {voided.hex()} are void",
    )
    assert VOIDED in outcome.not_covered
    assert outcome.claims.statements[0].endswith(
        "Of the charges 1 are void: documents paid for them as for answers, and none was given."
    )
    # Whoever reads a verdict derives it again.
    value = stated(outcome)
    predicate = outcome.predicate(time=1)
    assert Predicate.from_json(value).claims == predicate.claims
    for changed in ({"voids": 2}, {"voids": True}, {"voids": -1}, {"voids": "1"}, {"more": 1}):
        claims = value["claims"]
        integrity = {**claims["integrity"], **changed}
        with pytest.raises(MalformedError):
            Predicate.from_json({**value, "claims": {**claims, "integrity": integrity}})
    with pytest.raises(MalformedError):
        Predicate.from_json({**value, "counts": {**value["counts"], "voids": 0}})


def test_an_honest_window_with_an_anchored_account_passes() -> None:
    outcome = outcome_of(AnchoredQuestions)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    assert outcome.counts["charges_anchored"] == outcome.counts["charges_plain"] == 2
    assert outcome.check("promises").reason == "1 revealed promises, all kept"


def test_a_question_about_some_rows_charges_these_only() -> None:
    assert outcome_of(Filtered).result == "PASS"
    filtered, honest = (played(each)[0].charged[0] for each in (Filtered, GeneratingWindow))
    assert set(filtered.positions) < set(honest.positions)


def test_without_replay_the_claim_is_conditional() -> None:
    outcome = outcome_of(Unreplayed)
    assert (outcome.result, open_checks(outcome)) == ("CONDITIONAL", {"replay": "NOT ESTABLISHED"})
    assert (outcome.claims.integrity, outcome.claims.privacy) == ("PASS", "CONDITIONAL")
    assert "the provider's word" in outcome.check("replay").reason


@pytest.mark.parametrize(
    ("given", "left_open"),
    [
        ({"generator": None}, ["generator", "replay"]),
        ({"embedder": None}, ["embedding", "replay"]),
        ({"generator": OtherWords()}, ["generator", "replay"]),
    ],
)
def test_what_nobody_could_ask_again_is_not_established(
    given: dict[str, Any], left_open: list[str]
) -> None:
    outcome = outcome_of(GeneratingWindow, **given)
    assert open_checks(outcome) == dict.fromkeys(left_open, "NOT ESTABLISHED")
    assert outcome.result == "CONDITIONAL"


def test_questions_that_stay_closed_leave_the_claim_conditional() -> None:
    outcome = judged(GeneratingWindow(disclosure="none"))
    assert outcome.result == "CONDITIONAL"
    left = {"embedding": "NOT ESTABLISHED", "replay": "NOT ESTABLISHED"}
    assert open_checks(outcome) == left
    assert "discloses no questions" in outcome.check("replay").reason


def test_a_replay_has_votes_for_each_token_and_no_more() -> None:
    outcome = judged(SurplusVotes())
    assert outcome.failed == ("replay",)
    assert "votes for more tokens" in outcome.check("replay").reason


def test_receipts_that_nobody_takes_are_said_not_to_be_covered() -> None:
    assert UNLOGGED in outcome_of(GeneratingWindow).not_covered


def test_without_charged_rows_the_claim_is_conditional() -> None:
    outcome = outcome_of(Naive)
    assert (outcome.result, open_checks(outcome)) == ("CONDITIONAL", {"replay": "NOT ESTABLISHED"})
    found = outcome.generation
    assert found is not None
    # A question sees a replaced document as one row that changed.
    assert found.replace_one == found.replace_one_null == 30


def test_without_charged_rows_questions_are_counted() -> None:
    outcome = judged(AsksOneMore())
    assert outcome.failed == ("budget",)
    assert "3 questions" in outcome.check("budget").reason


@pytest.mark.slow
def test_sampled_charges_and_the_other_implementation() -> None:
    outcome = outcome_of(OfSamples)
    assert outcome.result == "PASS", [(c.id, c.status, c.reason) for c in outcome.checks]
    strata = {each["id"]: each for each in outcome.sampling["strata"]}
    assert strata["charges:acme"]["population"] == 3
    again = outcome_of(OfSamples, engine=engine("reference"))
    assert {c.id: c.status for c in again.checks} == {c.id: c.status for c in outcome.checks}
    assert again.generation == outcome.generation


def test_budgets_are_checked_from_the_public_part() -> None:
    window, items = played(GeneratingWindow)
    outcome = judged(window, public(items), part="public")
    assert outcome.check("budget").status is Status.PASS
    assert outcome.check("charges").status is Status.NOT_RUN
    assert outcome.generation == outcome_of(GeneratingWindow).generation


@pytest.mark.parametrize("part", ["all", "public"])
def test_a_verdict_is_shown_and_repeated(tmp_path: Path, part: Any) -> None:
    predicate = stated(outcome_of(Unreplayed, generator=None))
    assert rechecked(tmp_path, *played(Unreplayed), predicate, part).differences == ()
    verdict = signed(predicate)
    for page in (render_html(verdict), render_text(verdict)):
        words = " ".join(page.replace("&#39;", "'").split())
        assert "CONDITIONAL" in words
        assert "for any number of accounts" in words
        assert "the provider's word" in words
    assert "<polyline" in render_html(verdict)


@pytest.mark.parametrize("item", ["public/budgets/acme.bin", "confidential/replays/4.bin"])
def test_what_is_missing_is_missed_by_its_check(item: str) -> None:
    window, items = played(GeneratingWindow)
    outcome = judged(window, {name: data for name, data in items.items() if name != item})
    assert outcome.failed == ("budget" if "budgets" in item else "replay",)


def test_the_costs_are_read_as_they_are_written() -> None:
    costs = ChannelEpsilon("murag", 3, Fraction(3, 2), 2, 100, 4)
    value = costs.to_json()
    assert ChannelEpsilon.from_json(value) == costs
    assert (value["replace_one_null"], value["replace_one"]) == ("9", "18")
    assert Fraction(value["distance"]) >= Fraction(100, 2**100)
    for change in (
        {"replace_one": "9"}, {"uses": 4}, {"uses": 0}, {"epsilon_question": "3/0"},
        {"epsilon_question": "1.5"}, {"draws": -1}, {"more": 1},
        {"mechanism": "other"}, {"mechanism": "naive"},
    ):  # fmt: skip
        with pytest.raises(MalformedError):
            ChannelEpsilon.from_json({**value, **change})
    with pytest.raises(MalformedError):
        ChannelEpsilon.from_json([])


def test_a_replay_has_one_form() -> None:
    window, _ = played(GeneratingWindow)
    replay = window.replay(window.charged[0])
    assert Replay.parse(replay.encode()) == replay
    value = replay.to_json()
    rows = value["rows"]
    changes: tuple[dict[str, Any], ...] = (
        {"rows": rows[::-1]}, {"rows": [*rows, rows[-1]]}, {"blinding": "00"}, {"votes": [{}]},
        {"used": value["used"][::-1]}, {"salt_a": ""}, {"format": "ragaudit/v2/replay"},
    )  # fmt: skip
    for change in changes:
        with pytest.raises(MalformedError):
            Replay.from_json({**value, **change})


@pytest.mark.parametrize("more", [0, 1])
def test_a_refusal_counts_questions_in_words_too(more: int) -> None:
    """Alice asked for documents once and in words twice: a refusal may say 3, and no more."""

    class Refusing(GeneratingWindow):
        def close(self) -> None:
            self.refuse("alice", 3 + more, "unavailable", 19)
            super().close()

    outcome = judged(Refusing())
    if not more:
        assert outcome.result == "PASS"
        return
    assert outcome.failed == ("refusals",)
    assert "counts 4 queries (expected 3" in outcome.check("refusals").reason
