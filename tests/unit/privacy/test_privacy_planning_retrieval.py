"""Planning: recall and rank loss, intervals, the cost and the ceiling of a recall, the verdict.

Claims are those of docs/notes/accounting.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from for_each import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.guarantees import Strength
from ragaudit.privacy.planning.budget import Budget, Missing, Price, Targets, budget
from ragaudit.privacy.planning.retrieval import (
    Interval,
    Ranking,
    Retrieval,
    Service,
    Simulation,
    ceiling_of,
    cost_of_recall,
    judge,
    largest_recall,
    mean_interval,
    rank_loss,
    recall,
    simulate,
)

Scores = npt.NDArray[np.int64]
TARGETS = Targets("8", "0.000001", 50, 1, "0.00001", slots=1)


def scores(*values: int) -> Scores:
    return np.array(values, dtype=np.int64)


def nothing(question: int, trial: int, count: int) -> Scores:
    return np.zeros(count, dtype=np.int64)


def largest(noised: Scores, top_k: int) -> Sequence[int]:
    return np.argsort(-noised, kind="stable")[:top_k].tolist()


# Five rows with true ranks 1, 2, 3, 4, 5 in another order; K = 2.
FIVE = scores(30, 50, 10, 40, 20)


@for_each(
    ("returned", "found", "loss"),
    [
        ([1, 3], 1.0, 0.0),
        ([3, 1], 1.0, 0.0),  # a set: the order does not matter
        ([1, 0], 0.5, 0.5),  # ranks 1, 3 against 1, 2
        ([0, 4], 0.0, 2.0),  # ranks 3, 4 against 1, 2
        ([4, 2], 0.0, 3.0),  # ranks 4, 5: as bad as it gets, N - K
        ([1], 0.5, 0.0),  # one place is empty: recall suffers, the row is the best
        ([2], 0.0, 4.0),  # rank 5 against 1, N - |T|
        ([], 0.0, None),
    ],
)
def test_recall_and_rank_loss_of_five_rows(
    returned: list[int], found: float, loss: float | None
) -> None:
    assert recall(FIVE, returned, 2) == found
    assert rank_loss(FIVE, returned, 2) == loss


def test_of_rows_that_tie_at_the_last_place_any_will_do() -> None:
    tied = scores(9, 5, 5, 5, 1)  # true ranks 1, 2, 2, 2, 5
    for second in (1, 2, 3):
        assert recall(tied, [0, second], 2) == 1.0
        assert rank_loss(tied, [0, second], 2) == 0.0
    assert recall(tied, [1, 2], 2) == 1.0  # both have at most one row above them
    assert rank_loss(tied, [1, 2], 2) == 0.5  # ranks 2, 2 against 1, 2
    assert Ranking.of(tied, 2).random_recall() == 4 / 5
    # Where the best tie, the worst rows are more than N - |T| = 2 places behind: 3, 4 against 1, 1.
    assert rank_loss(scores(1, 0, -1, 1), [1, 2], 2) == 2.5


def test_blind_choice() -> None:
    ranking = Ranking.of(FIVE, 2)
    assert ranking.random_recall() == 2 / 5
    assert ranking.random_rank_loss() == (5 - 2) / 2


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=9), st.data())
def test_recall_and_rank_loss_against_counting(values: list[int], data: st.DataObject) -> None:
    top_k = data.draw(st.integers(1, len(values) - 1))
    returned = data.draw(
        st.lists(st.integers(0, len(values) - 1), unique=True, max_size=top_k, min_size=1)
    )
    ranks = [1 + sum(other > value for other in values) for value in values]
    hits = sum(ranks[at] <= top_k for at in returned)
    got, best = sorted(ranks[at] for at in returned), sorted(ranks)
    expected = sum(a - b for a, b in zip(got, best, strict=False)) / len(returned)
    assert recall(scores(*values), returned, top_k) == hits / top_k
    loss = rank_loss(scores(*values), returned, top_k)
    most = len(values) - (len(returned) if len(set(values)) == len(values) else 1)
    assert loss is not None and 0 <= loss <= most
    assert loss == pytest.approx(expected)


@for_each(
    ("call", "where"),
    [
        (lambda: recall(FIVE, [0, 0], 2), "returned"),
        (lambda: recall(FIVE, [0, 1, 2], 2), "returned"),
        (lambda: recall(FIVE, [5], 2), "returned"),
        (lambda: rank_loss(FIVE, [-1], 2), "returned"),
        (lambda: recall(FIVE, [0], 5), "top_k"),
        (lambda: recall(FIVE, [0], 0), "top_k"),
        (lambda: recall(FIVE, [0], True), "top_k"),
        (lambda: recall(FIVE.astype(np.int32), [0], 2), "scores"),
        (lambda: recall(FIVE[np.newaxis], [0], 2), "scores"),
    ],
)
def test_bad_answers_are_refused(call: Callable[[], object], where: str) -> None:
    with pytest.raises(MalformedError) as caught:
        call()
    assert caught.value.where == where


def test_students_interval() -> None:
    # n = 4, mean 2.5, sample deviation sqrt(5/3); t quantile with 3 degrees, .975: 3.182446.
    found = mean_interval(np.array([1.0, 2.0, 3.0, 4.0]), highest=9.0)
    margin = 3.182446305 * math.sqrt(5 / 3) / 2
    assert (found.mean, found.low, found.high) == pytest.approx((2.5, 2.5 - margin, 2.5 + margin))


def test_an_interval_stays_in_range_and_has_width() -> None:
    cut = mean_interval(np.array([0.0, 1.0, 1.0]), highest=1.0)
    assert cut.high == 1.0 and cut.low == 0.0
    # 20 equal values: others have a probability of at most 1 - 0.025^(1/20) = 0.1684335.
    alike = mean_interval(np.full(20, 0.25), highest=1.0)
    assert alike.low == pytest.approx(0.25 * (1 - 0.1684335), abs=1e-6)
    assert alike.high == pytest.approx(0.25 + 0.75 * 0.1684335, abs=1e-6)


def test_the_interval_covers_as_it_says() -> None:
    # Means of 30 uniform values: coverage 0.95 up to t's error, below 0.005 here. In 2000
    # repetitions the number covered has deviation 9.75; 0.93 and 0.97 are 3.6 and more beyond.
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        found = mean_interval(generator.random(30), highest=1.0)
        covered += found.low <= 0.5 <= found.high
    assert 0.93 * 2000 <= covered <= 0.97 * 2000


@pytest.mark.parametrize(
    ("values", "where"),
    [([0.5], "questions"), ([], "questions"), ([0.5, 1.5], "values"), ([0.5, math.nan], "values")],
)
def test_intervals_of_bad_values_are_refused(values: list[float], where: str) -> None:
    with pytest.raises(MalformedError) as caught:
        mean_interval(np.array(values), highest=1.0)
    assert caught.value.where == where


def test_an_interval_needs_a_finite_range() -> None:
    with pytest.raises(MalformedError) as caught:
        mean_interval(np.array([1.0, 2.0]), highest=math.inf)
    assert caught.value.where == "highest"


def test_without_noise_retrieval_is_exact() -> None:
    asked: list[int] = []
    found = simulate(
        [FIVE, FIVE[::-1].copy()], {"1": nothing}, largest, top_k=2, trials=2, progress=asked.append
    )
    (point,) = found.points
    assert point.recall.mean == 1.0 and point.returned == 2.0
    # Two questions that agree: others have a probability of at most 1 - 0.025^(1/2) = 0.841886,
    # and lose at most N - 1 = 4 places.
    assert point.rank_loss is not None
    assert (point.rank_loss.mean, point.rank_loss.low) == (0.0, 0.0)
    assert point.rank_loss.high == pytest.approx(4 * 0.841886, abs=1e-5)
    assert point.by_question == (1.0, 1.0)
    assert (found.random_recall, found.random_rank_loss) == (0.4, 1.5)
    assert (found.questions, found.trials, found.top_k) == (2, 2, 2)
    assert asked == [1, 2]


def test_trials_are_averaged_within_a_question() -> None:
    # Every other trial turns the order of the first question round.
    def noise(question: int, trial: int, count: int) -> Scores:
        assert count == 5
        return -2 * FIVE if question == 0 and trial % 2 else np.zeros(5, dtype=np.int64)

    found = simulate([FIVE, FIVE], {"1": noise}, largest, top_k=2, trials=4)
    (point,) = found.points
    assert point.by_question == (0.5, 1.0)
    assert point.recall.mean == pytest.approx((0.5 + 1.0) / 2)
    assert point.rank_loss is not None
    assert point.rank_loss.mean == pytest.approx((1.5 + 0.0) / 2)


def test_questions_without_an_answer_have_no_rank_loss() -> None:
    found = simulate([FIVE] * 3, {"1": nothing}, lambda *_: (), top_k=2, trials=1)
    assert found.points[0].rank_loss is None
    assert found.points[0].returned == 0.0
    assert found.points[0].recall.mean == 0.0


def test_points_rise_with_sigma_and_are_found_by_value() -> None:
    found = simulate(
        [FIVE, FIVE], {"10": nothing, "2": nothing, "0.5": nothing}, largest, top_k=1, trials=1
    )
    assert [point.sigma for point in found.points] == ["0.5", "2", "10"]
    assert found.at("2.000").sigma == "2"
    with pytest.raises(MalformedError):
        found.at("3")


@for_each(
    ("changes", "where"),
    [
        ({"noise": {}}, "noise"),
        ({"noise": {"x": nothing}}, "noise"),
        ({"trials": 0}, "trials"),
        ({"trials": True}, "trials"),
        ({"top_k": 5}, "top_k"),
        ({"scored": [FIVE]}, "questions"),
        ({"scored": []}, "questions"),
    ],
)
def test_bad_simulations_name_the_argument(changes: dict[str, object], where: str) -> None:
    arguments = {"scored": [FIVE] * 2, "noise": {"1": nothing}, "trials": 1, "top_k": 2, **changes}
    scored, noise = arguments.pop("scored"), arguments.pop("noise")
    with pytest.raises(MalformedError) as caught:
        simulate(scored, noise, largest, **arguments)  # type: ignore[arg-type]
    assert caught.value.where == where


def simulation(*points: tuple[str, float, float, float], blind: float = 0.01) -> Simulation:
    made = tuple(
        Retrieval(sigma, Interval(mean, low, high), None, 5.0, ())
        for sigma, low, mean, high in points
    )
    return Simulation(made, blind, 100.0, 5, 100, 3)


CURVE = simulation(("0.1", 0.9, 0.95, 1.0), ("1", 0.4, 0.45, 0.5), ("10", 0.0, 0.05, 0.1))


def test_a_recall_costs_the_noise_at_which_the_curve_crosses_it() -> None:
    cost = cost_of_recall(CURVE, TARGETS, 0.7)
    assert cost.best is not None and cost.sure is not None and cost.hopeful is not None
    # Half the way from 0.95 to 0.45, in the logarithm of sigma: 10^-0.5, four digits, down.
    assert cost.best.sigma == "0.3162"
    assert cost.sure.sigma == "0.2511"  # 10^(-1 + 0.4): 0.9 to 0.4
    assert cost.hopeful.sigma == "0.3981"  # 10^(-1 + 0.6): 1.0 to 0.5
    assert not cost.beyond
    best, sure, hopeful = (
        Decimal(each.coalition.ideal_epsilon) for each in (cost.best, cost.sure, cost.hopeful)
    )
    assert hopeful < best < sure


def test_a_recall_may_not_be_reached_or_surpassed_by_all() -> None:
    never = cost_of_recall(CURVE, TARGETS, 0.99)
    assert never.best is None and never.sure is None and never.hopeful is not None
    always = cost_of_recall(CURVE, TARGETS, 0.05)
    assert always.beyond and always.best is not None and always.best.sigma == "10.00"
    assert cost_of_recall(CURVE, TARGETS, 0.02).sure is not None


def test_chance_rises_of_the_curve_are_levelled() -> None:
    wavy = simulation(("0.1", 0.8, 0.8, 0.8), ("1", 0.4, 0.4, 0.4), ("10", 0.6, 0.6, 0.6))
    cost = cost_of_recall(wavy, TARGETS, 0.5)
    # The two last are pooled at 0.5; the lower curve stays down, the upper one up.
    assert cost.best is not None and cost.best.sigma == "10.00"
    assert cost.sure is not None and float(cost.sure.sigma) < 1
    assert cost.hopeful is not None and cost.hopeful.sigma == "10.00"


@settings(max_examples=4, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_higher_recall_never_costs_less(means: list[float], one: float, other: float) -> None:
    curve = simulation(
        *((sigma, 0.8 * mean, mean, min(1.0, 1.1 * mean))
          for sigma, mean in zip(("0.1", "1", "10"), means, strict=True))
    )  # fmt: skip
    low, high = sorted((one, other))
    cheap, dear = cost_of_recall(curve, TARGETS, low), cost_of_recall(curve, TARGETS, high)
    for name in ("best", "sure", "hopeful"):
        a, b = getattr(cheap, name), getattr(dear, name)
        assert a is not None or b is None
        if b is not None:
            assert float(a.sigma) >= float(b.sigma)


@pytest.mark.parametrize("wanted", [0.0, -0.1, 1.1, math.nan])
def test_impossible_recalls_are_refused(wanted: float) -> None:
    with pytest.raises(MalformedError) as caught:
        cost_of_recall(CURVE, TARGETS, wanted)
    assert caught.value.where == "recall"


large = cache(lambda: budget(TARGETS))  # advantage 0.56
strong = cache(lambda: budget(replace(TARGETS, epsilon="0.5")))
weak = cache(lambda: budget(replace(TARGETS, epsilon="3")))
empty = cache(lambda: budget(replace(TARGETS, epsilon="30")))
unbounded = cache(lambda: budget(replace(TARGETS, epsilon=None), sigma="0.1"))
broken = cache(lambda: budget(replace(TARGETS, epsilon="1"), sigma="20"))


def at(sigma: str, low: float, mean: float, high: float) -> Simulation:
    return simulation((sigma, low, mean, high))


@pytest.mark.parametrize(
    ("make", "retrieval", "service", "promise", "words"),
    [
        # Blind choice 0.01: half way is 0.505, nine tenths of the way 0.901.
        (empty, (0.91, 0.95, 0.99), Service.GOOD, Strength.EMPTY, "Retrieval good (recall@5 0.950"),
        (empty, (0.9, 0.95, 0.99), Service.WEAK, Strength.EMPTY, "Retrieval weak (recall@5 0.950"),
        (weak, (0.51, 0.6, 0.7), Service.WEAK, Strength.WEAK, "promise weak: one account"),
        (weak, (0.3, 0.4, 0.504), Service.USELESS, Strength.WEAK, "half way 0.505"),
        (weak, (0.0, 0.02, 0.04), Service.USELESS, Strength.WEAK, "blind choice 0.010"),
        (weak, (0.4, 0.5, 0.506), Service.UNDECIDED, Strength.WEAK, "100 questions do not tell"),
        (strong, (0.0, 0.9, 1.0), Service.UNDECIDED, Strength.MEANINGFUL, "ask more"),
        (strong, (0.0, 0.0, 0.1), Service.USELESS, Strength.MEANINGFUL, "promise meaningful: "),
        (
            unbounded, (0.6, 0.7, 0.8), Service.WEAK, Strength.EMPTY,
            "no finite epsilon for one account",
        ),
        (empty, (0.0, 0.02, 0.04), Service.USELESS, Strength.EMPTY, "promise empty: "),
        (broken, (0.6, 0.7, 0.8), Service.WEAK, Strength.WEAK, "promise is broken"),
        (broken, None, Service.NOT_SIMULATED, Strength.WEAK, "has epsilon 3.31 at delta 0.000001"),
        (strong, None, Service.NOT_SIMULATED, Strength.MEANINGFUL, "Retrieval not simulated; "),
    ],
)  # fmt: skip
def test_the_verdict(
    make: Callable[[], Budget], retrieval: Any, service: Service, promise: Strength, words: str
) -> None:
    plan = make()
    verdict = judge(plan, None if retrieval is None else at(plan.sigma, *retrieval))
    assert (verdict.service, verdict.promise) == (service, promise)
    assert words in verdict.sentence
    # Both numbers, always.
    if make is not unbounded:
        assert "membership advantage 0." in verdict.sentence
    assert retrieval is None or "recall@5 0." in verdict.sentence
    assert verdict.sentence.endswith(".")


def test_a_plan_is_judged_over_all_windows_asked_for() -> None:
    one = budget(replace(TARGETS, epsilon="1"))
    many = budget(replace(TARGETS, epsilon="1", windows=100))
    assert many.sigma == one.sigma
    assert judge(one, None).promise is Strength.MEANINGFUL
    verdict = judge(many, None)
    assert verdict.promise is Strength.EMPTY
    assert "one account over 100 windows" in verdict.sentence
    assert (
        f"membership advantage {ceil3(many.over_windows[-1].price.advantage)}" in verdict.sentence
    )


def ceil3(advantage: str) -> str:
    return str(Decimal(advantage).quantize(Decimal("0.001"), ROUND_CEILING))


def test_a_broken_promise_may_have_no_epsilon_at_all() -> None:
    sentence = judge(budget(TARGETS, sigma="0.1"), None).sentence
    assert "one account has no finite epsilon at delta 0.000001, not 8" in sentence
    assert "promise is broken" not in judge(unbounded(), None).sentence


def test_the_sentence_names_the_protected_unit() -> None:
    assert "whether a row is there" in judge(large(), None).sentence
    document = budget(replace(TARGETS, rows_per_document=3))
    assert "whether a document is there" in judge(document, None).sentence


def test_the_sentence_gives_odds_rounded_up() -> None:
    advantage = Decimal(large().coalition.price.advantage)
    sentence = judge(large(), None).sentence
    assert 77.8 < 50 * (1 + advantage) < 77.81
    assert "77.9 times in 100" in sentence


def difference(trials: int, more: Any, less: Any, epsilon: Any) -> Any:
    """``sum over all outcomes of max(0, P - e^epsilon Q)`` at 60 digits."""
    with mp.workdps(60):
        p, q, odds = mpf(more), mpf(less), mp.exp(mpf(epsilon))
        return mp.fsum(
            max(
                mpf(0),
                math.comb(trials, t)
                * (p**t * (1 - p) ** (trials - t) - odds * q**t * (1 - q) ** (trials - t)),
            )
            for t in range(trials + 1)
        )


def kept(recall: float, epsilon: float, delta: float, trials: int, blind: float) -> bool:
    """Whether counts of hits at both recalls are as close as (epsilon, delta) demands."""
    return bool(
        difference(trials, recall, blind, epsilon) <= delta
        and difference(trials, blind, recall, epsilon) <= delta
    )


@settings(max_examples=30, deadline=None)
@given(
    epsilon=st.floats(0, 12),
    delta=st.floats(1e-9, 0.5),
    trials=st.integers(1, 60),
    blind=st.floats(1e-4, 0.9),
)
def test_claim_25_the_ceiling_is_that_of_all_outcomes(
    epsilon: float, delta: float, trials: int, blind: float
) -> None:
    found = largest_recall(epsilon, delta, trials, blind)
    # What is kept falls with the recall: the ceiling is between what is kept and what is not.
    assert kept(max(blind, found - 2e-6), epsilon, delta, trials, blind)
    assert found >= 1 - 1e-12 or not kept(found + 1e-12, epsilon, delta, trials, blind)


@pytest.mark.parametrize("trials", [1, 7, 500])
def test_pure_privacy_of_one_question_in_closed_form(trials: int) -> None:
    """At delta 0 every count must keep the ratio; all m hits bind: R = q e^(eps/m), or misses."""
    epsilon, blind = 2.0, 0.01
    hits = blind * math.exp(epsilon / trials)
    misses = 1 - (1 - blind) * math.exp(-epsilon / trials)
    assert largest_recall(epsilon, 0, trials, blind) == pytest.approx(min(hits, misses), abs=1e-6)


def test_a_delta_of_one_allows_everything_and_nothing_allows_blind_choice() -> None:
    assert largest_recall(0, 1, 10, "0.1") == 1
    assert largest_recall(3, "0.1", 10, 1) == 1
    assert largest_recall(0, 0, 10**6, Fraction(1, 200)) == pytest.approx(1 / 200, abs=1e-9)
    assert largest_recall(1000, 0, 3, "0.1") == 1


def test_more_queries_and_smaller_guarantees_leave_less() -> None:
    found = [largest_recall(1, 1e-6, 10**power, 0.005) for power in range(9)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(0.005, rel=0.02)
    rising = [largest_recall(epsilon, 1e-6, 250, 0.005) for epsilon in (0, 0.5, 1, 5, 20, 100, 900)]
    assert rising == sorted(rising)
    # Against the normal limit of many questions: mu = (R - q) sqrt(m/(q (1 - q))).
    mu = (largest_recall(1, 1e-5, 10**7, 0.3) - 0.3) * math.sqrt(10**7 / 0.21)
    assert 0.2 < mu < 0.3


def test_the_ceiling_of_a_price() -> None:
    replace = NeighboringRelation.REPLACE
    price = Price(250, "0.00001", replace, "8.000000", "8.000000", "0.9")
    assert ceiling_of(price, 0.005) == largest_recall("8", "0.00001", 250, 0.005)
    nothing = Price(250, "0.00001", replace, None, "80.000000", "1")
    assert isinstance(ceiling_of(nothing, 0.005), Missing)
    many = Price(10**9, "0.00001", replace, "8.000000", "8.000000", "0.9")
    assert isinstance(ceiling_of(many, 0.005), Missing)


@for_each(
    ("where", "arguments"),
    [
        ("epsilon", (-1, 0, 1, 0.1)),
        ("delta", (1, 2, 1, 0.1)),
        ("queries", (1, 0, 0, 0.1)),
        ("queries", (1, 0, 10**9, 0.1)),
        ("blind", (1, 0, 1, 0)),
        ("blind", (1, 0, 1, "x")),
    ],
)
def test_bad_values_are_refused_by_name(where: str, arguments: Any) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        largest_recall(*arguments)
    assert caught.value.where == where
