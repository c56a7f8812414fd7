"""Whole windows under MURAG-ADA: what is released of counts, and what a replay says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from judged_windows import judged, open_checks, outcome_of, played
from procedure_cases import use_cached_table
from ragaudit.circuits.selection import scores
from ragaudit.lab.scenario.generating import AdaptiveWindow, Charged, GeneratingWindow
from ragaudit.lab.scenario.integrity import LEFT_SHELF
from ragaudit.lab.scenario.opening import Account, Event
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.challenge import Replay
from ragaudit.ledger.messages.entries import Charge
from ragaudit.ledger.messages.receipts import GeneratedAnswer
from ragaudit.privacy.accounting.generation import ChannelEpsilon
from ragaudit.privacy.mechanisms.dp_rag import TokenAnswer, TokenVoters
from ragaudit.privacy.mechanisms.retrieval import Row
from ragaudit.privacy.mechanisms.samplers import Coins, KeyedCoins
from ragaudit.privacy.mechanisms.streams import Adaptive, Bin, DocumentBudgets, MuragAda
from ragaudit.verifier.engines import engine

use_cached_table()


def window_of_counts() -> AdaptiveWindow:
    """The honest window, made once."""
    window = played(AdaptiveWindow)[0]
    assert isinstance(window, AdaptiveWindow)
    return window


def test_an_honest_window_passes_and_says_what_it_costs() -> None:
    outcome = outcome_of(AdaptiveWindow)
    assert (outcome.result, open_checks(outcome)) == ("PASS", {})
    costs = outcome.generation
    assert isinstance(costs, ChannelEpsilon)
    # M = 2 uses of 10: what counting costs is in it.
    assert [costs.replace_one_null, costs.replace_one] == [20, 40]
    # Four entries, each with at most 4 counts, 4 slots and 2 draws for each of 4 tokens.
    assert (costs.draws, costs.private) == (4 * (4 + 4 + 8), 2)
    assert "released sums" in outcome.check("replay").reason


def test_the_window_does_what_the_mechanism_does() -> None:
    """Counts, sums, thresholds, charges and answers of acme, question by question."""
    window = window_of_counts()
    terms = window.policy.generation
    assert terms is not None
    uses = terms.uses * terms.epsilon
    edges = [127 * 127, *window.adaptive.edges]
    stream = MuragAda(
        window.mechanism,
        DocumentBudgets(uses, terms.epsilon),
        window.adaptive.epsilon,
        tuple(Bin(Fraction(low), Fraction(high)) for high, low in pairwise(edges)),
        window.adaptive.enough,
    )
    index = window.indices["acme"]
    read = []
    for asked in window.history("acme"):
        exact = scores(index.vectors, asked.embedding)
        rows = [Row(i, Fraction(int(s)), index.texts[i]) for i, s in enumerate(exact)]
        coins = KeyedCoins(window.coin_key(asked))
        outcome = stream.ask(asked.request.query, rows, window.voters, coins)
        sums = tuple(Fraction(total) for total in asked.charge.sums)
        assert asked.charge.threshold is not None
        assert outcome.adaptive == Adaptive(sums, Fraction(asked.charge.threshold))
        assert sorted(outcome.charged) == [*asked.positions]
        assert sorted(outcome.used) == [*asked.used]
        assert isinstance(asked.answer, GeneratedAnswer)
        assert (outcome.answer.tokens, outcome.answer.private) == (
            asked.answer.tokens,
            asked.answer.private,
        )
        read.append(len(sums))
    # Some stop before the last bin, and one reads them all.
    assert min(read) < max(read) == len(window.adaptive.edges)


def replay_of(asked: Charged) -> tuple[str, Replay]:
    """The item with an entry's replay, and the replay."""
    name = names.replay_name(asked.index)
    return name, Replay.parse(played(AdaptiveWindow)[1][name])


def test_a_void_opens_its_rows_and_no_answer() -> None:
    window, items = window_of_counts(), played(AdaptiveWindow)[1]
    (void,) = (one for one in window.charged if one.answer is None)
    name, replay = replay_of(void)
    assert replay.rows and (replay.answer, replay.salt_a, replay.votes) == (None, None, ())
    missing = {item: data for item, data in items.items() if item != name}
    assert judged(window, missing).failed == ("replay",)
    _, other = replay_of(next(one for one in window.charged if one.answer is not None))
    with_answer = replace(replay, answer=other.answer, salt_a=other.salt_a).encode()
    outcome = judged(window, {**items, name: with_answer})
    assert outcome.failed == ("replay",)
    assert "to a void" in outcome.check("replay").reason


def test_an_answer_that_is_not_opened_fails() -> None:
    window, items = window_of_counts(), played(AdaptiveWindow)[1]
    name, replay = replay_of(next(one for one in window.charged if one.answer is not None))
    closed = Replay.of_void(replay.blinding, replay.rows).encode()
    outcome = judged(window, {**items, name: closed})
    assert outcome.failed == ("replay",)
    assert "no answer is opened" in outcome.check("replay").reason


class Filtered(AdaptiveWindow):
    """A question is about some rows only: only these are counted."""

    def script(self) -> list[Event]:
        asked = ("charge", "alice", "treatment of bazeli ?", 1)
        return [(*each, LEFT_SHELF) if each == asked else each for each in super().script()]


@pytest.mark.slow
def test_rows_that_a_filter_excludes_are_not_counted() -> None:
    assert judged(Filtered()).result == "PASS"


class Lowered(AdaptiveWindow):
    """The first question's first sum is not that of coins and rows; reading stops where it did."""

    def count(self, counts: Sequence[int], coins: Coins) -> tuple[int, ...]:
        first, *others = super().count(counts, coins)
        return (first, *others) if self.charged else (first - 1, *others)


@pytest.mark.slow
def test_sums_are_computed_again_where_questions_stay_closed() -> None:
    left = {"embedding": "NOT ESTABLISHED", "replay": "NOT ESTABLISHED"}
    outcome = judged(AdaptiveWindow(disclosure="none"))
    assert (outcome.result, open_checks(outcome)) == ("CONDITIONAL", left)
    lying = judged(Lowered(disclosure="none"))
    assert lying.failed == ("replay",)
    assert "other sums" in lying.check("replay").reason


class SumsUnderMurag(GeneratingWindow):
    """A window with one threshold for all questions releases sums."""

    def alter_charge(self, account: Account, charge: Charge) -> Charge:
        return replace(charge, sums=(len(self.charged),))

    def generate(
        self, asked: Charged, slots: Sequence[str], voters: TokenVoters, coins: Coins
    ) -> TokenAnswer:
        return super().generate(asked, slots, voters, KeyedCoins(self.coin_key(asked)))


@pytest.mark.slow
def test_the_other_implementation_says_the_same() -> None:
    outcome = outcome_of(AdaptiveWindow)
    again = outcome_of(AdaptiveWindow, engine=engine("reference"))
    assert {c.id: c.status for c in again.checks} == {c.id: c.status for c in outcome.checks}
    assert again.generation == outcome.generation


class AnchoredAccount(AdaptiveWindow):
    """An anchored account asks; its question is voided once its promise has run out."""

    def script(self) -> list[Event]:
        events: list[Event] = [
            ("register", "carol", "beta", True, -23) if each[:2] == ("register", "carol") else each
            for each in super().script()
        ]
        kept = [each for each in events if each[0] != "void" and each[:2] != ("query", "carol")]
        return [*kept, ("void", 2, 50), ("checkpoint", 52)]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (SumsUnderMurag, "none under this policy"),
        (AnchoredAccount, "plain under murag-ada"),
    ],
)
def test_charges_that_the_policy_does_not_have_fail(
    kind: type[GeneratingWindow], reason: str
) -> None:
    outcome = judged(kind())
    assert outcome.failed == ("charges",)
    assert reason in outcome.check("charges").reason
