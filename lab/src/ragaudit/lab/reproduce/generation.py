"""What the arms achieved: shares with bootstrap intervals over corpora, beside the papers'.

Each arm answers a stream of questions at each total epsilon on one corpus. The attack on a record
is the best question stream that we know, by any number of accounts. The attacker knows all other
records and the model, and asks for what the record would change: a disease whose voters are as
nearly divided as its other records allow. One token is drawn for each question, which spends the
whole eps_q on it; the score is the exact likelihood ratio.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from ragaudit.cli.figures import COLORS, axes, panels, render
from ragaudit.lab.generation.records import SUPPORT, Corpus, Question, corpus, scores
from ragaudit.lab.generation.transformer import Transformer, completed
from ragaudit.lab.generation.vocabulary import CONTENT, END, TOKENS, UNKNOWN, encode
from ragaudit.lab.generation.voters import PROMPT, VOCABULARY, LocalVoters
from ragaudit.lab.risk.estimation import area_under_curve
from ragaudit.privacy.accounting.generation import calibrated
from ragaudit.privacy.mechanisms.dp_ksa import DpKsa, KeywordAnswer, gaps, histogram, keywords
from ragaudit.privacy.mechanisms.dp_rag import DpRag, TokenAnswer
from ragaudit.privacy.mechanisms.feasibility import choice_chance, private_chance
from ragaudit.privacy.mechanisms.retrieval import Row, best_rows, top_slots
from ragaudit.privacy.mechanisms.samplers import LARGEST_EXPONENT, KeyedCoins
from ragaudit.privacy.mechanisms.streams import (
    Bin,
    DocumentBudgets,
    Murag,
    MuragAda,
    Naive,
    Outcome,
)
from scipy.stats import norm

EPSILONS = (1, 2, 3, 5, 8, 10)
"""Totals, of the whole stream, for null-replace."""
DELTA = Fraction(1, 10**5)
"""Of the arms with keywords: half for the conversion, half for the tests."""

# Fixed on corpora of other seeds (docs/notes/generation.md, 8), before the ones that are reported.
VOTERS = 40
TAU = Fraction(9, 10)
BINS = (Bin(Fraction(19, 20), Fraction(1)), Bin(TAU, Fraction(19, 20)))
COUNTING = Fraction(1, 5)
"""Of eps_q, what MURAG-ADA pays for its counts."""
PUBLIC_DOCUMENTS = 4
"""That the non-private model reads at once; what has room in its context."""

BASELINES = ("closed book", "non-private RAG", "non-private KSA")
PAYING = (
    "NAIVE",
    "MURAG, M = 1",
    "MURAG, M = 5",
    "MURAG-ADA, M = 1",
    "DP-KSA",
    "MURAG with DP-KSA",
)
REUSING = {
    "MURAG, M = 1, reuse": "MURAG, M = 1",
    "MURAG, M = 5, reuse": "MURAG, M = 5",
    "MURAG with DP-KSA, reuse": "MURAG with DP-KSA",
}
"""Arms that give a question asked again its stored answer, at no charge, by what they are else."""
ARMS = (*PAYING, *REUSING)
_STOP = frozenset({"unknown", "treatment", "symptom", "of", "patient", "keywords"})


@dataclass(frozen=True)
class Size:
    """How much is run.

    Attributes:
        seeds: corpora, one seed each.
        families: of diseases in a corpus.
        questions: of a stream.
        epsilons: totals.
    """

    seeds: int = 10
    families: int = 12
    questions: int = 100
    epsilons: tuple[int, ...] = EPSILONS


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, answered by one arm.

    Attributes:
        seed: of the corpus.
        arm: one of `BASELINES` or `ARMS`.
        epsilon: total of the stream; None of a baseline.
        support, kind: of the question.
        right: the answer has the name.
        charged, used: documents that paid, and that were read.
        precise: of those that were read, how many are of the best `VOTERS` of the whole corpus.
        private: tokens drawn, or keywords released.
        reused: the answer was there already.
    """

    seed: int
    arm: str
    epsilon: int | None
    support: int
    kind: str
    right: bool
    charged: int = 0
    used: int = 0
    precise: int = 0
    private: int = 0
    reused: bool = False


def rag(price: Fraction) -> DpRag:
    """Return the terms of a question: as many private tokens as a name has.

    Args:
        price: of the question, eps_q.
    """
    # More would round weights (spec 11.2); what is over is not spent.
    token = min(price / CONTENT, Fraction(4 * LARGEST_EXPONENT, VOTERS))
    return DpRag(price, token, VOTERS, 1, len(TOKENS), END, CONTENT + 1)


def _ksa(epsilon: int, questions: int) -> DpKsa:
    found = calibrated(epsilon, DELTA / 2, questions)
    # Rounded against the data's owner never: a smaller epsilon of the choice, a larger sigma.
    choice = found.epsilon_choice.quantize(Decimal("1e-6"), ROUND_FLOOR)
    sigma = found.sigma.quantize(Decimal("1e-3"), ROUND_CEILING)
    return DpKsa(
        Fraction(choice), Fraction(sigma), DELTA / 2 / questions, VOTERS, (1, 2, 3),
        stop_words=_STOP,
    )  # fmt: skip


Answered = Outcome[TokenAnswer] | Outcome[KeywordAnswer]
Ask = Callable[[str, Sequence[Row], KeyedCoins], Answered]


def reusing(ask: Ask) -> Ask:
    """Return the same, but a question that was asked before has the answer that it had.

    What was released may be released again: nobody pays, and nothing is read.

    Args:
        ask: answers a question that is new.
    """
    stored: dict[str, Answered] = {}

    def answered(text: str, rows: Sequence[Row], coins: KeyedCoins) -> Answered:
        if text in stored:
            return replace(stored[text], charged=frozenset(), used=frozenset())
        stored[text] = ask(text, rows, coins)
        return stored[text]

    return answered


def _streams(voters: LocalVoters, epsilon: int, questions: int) -> Mapping[str, Ask]:
    """Return what answers a stream, by arm; those that reuse answers have budgets of their own."""
    streams = _paying(voters, epsilon, questions)
    others = _paying(voters, epsilon, questions)
    return {**streams, **{arm: reusing(others[base]) for arm, base in REUSING.items()}}


def _paying(voters: LocalVoters, epsilon: int, questions: int) -> Mapping[str, Ask]:
    total = Fraction(epsilon)
    naive = Naive(rag(total / questions), total / questions, questions)
    murag = {
        uses: Murag(rag(total / uses), DocumentBudgets(total, total / uses), TAU) for uses in (1, 5)
    }
    counting = total * COUNTING
    adaptive = MuragAda(
        rag(total - counting), DocumentBudgets(total, total), counting, BINS, VOTERS
    )
    ksa = Naive(_ksa(epsilon, questions), Fraction(1), questions)
    # Money is the one use that each document has: its divergence is that of one question.
    filtered = Murag(_ksa(epsilon, 1), DocumentBudgets(1, 1), TAU)
    return {
        "NAIVE": lambda text, rows, coins: naive.ask(text, rows, voters, coins),
        "MURAG, M = 1": lambda text, rows, coins: murag[1].ask(text, rows, voters, coins),
        "MURAG, M = 5": lambda text, rows, coins: murag[5].ask(text, rows, voters, coins),
        "MURAG-ADA, M = 1": lambda text, rows, coins: adaptive.ask(text, rows, voters, coins),
        "DP-KSA": lambda text, rows, coins: ksa.ask(text, rows, voters, coins),
        "MURAG with DP-KSA": lambda text, rows, coins: filtered.ask(text, rows, voters, coins),
    }


def run(
    model: Transformer, seed: int, size: Size, done: Callable[[], object] = lambda: None
) -> Iterator[Asked]:
    """Yield every question of one corpus, answered by every arm.

    Args:
        model: of all voters.
        seed: of corpus and coins.
        size: how much is run.
        done: is called after each question.
    """
    made = corpus(np.random.default_rng([seed, 2]), size.families, size.questions)
    voters = LocalVoters(model)
    streams = {each: _streams(voters, each, size.questions) for each in size.epsilons}
    for number, question in enumerate(made.questions):
        rows = _rows(made, question.text)
        best = frozenset(row.id for row in best_rows(rows, VOTERS))
        voters.prepare(question.text, [row.text for row in rows])
        yield from _baselines(model, voters, seed, question, rows)
        for epsilon, arms in streams.items():
            for arm, ask in arms.items():
                # With reuse the same coins: what differs is what reuse does.
                coins = KeyedCoins(_key(seed, epsilon, REUSING.get(arm, arm), number))
                outcome = ask(question.text, rows, coins)
                text, private = _said(outcome.answer)
                reused = arm in REUSING and question.kind == "repeated"
                yield Asked(
                    seed, arm, epsilon, question.support, question.kind,
                    question.answer in text.split(), len(outcome.charged), len(outcome.used),
                    len(outcome.used & best), 0 if reused else private, reused,
                )  # fmt: skip
        done()


def _rows(made: Corpus, question: str) -> list[Row]:
    """Return every row that any arm can read: those above tau, and the best of the corpus."""
    found = scores(question, made.texts)
    order = sorted(range(len(found)), key=lambda place: (-found[place], place))
    return [
        Row(place, found[place], made.texts[place])
        for rank, place in enumerate(order)
        if rank < VOTERS or found[place] > TAU
    ]


def _baselines(
    model: Transformer, voters: LocalVoters, seed: int, question: Question, rows: Sequence[Row]
) -> Iterator[Asked]:
    slots = top_slots(best_rows(rows, VOTERS), VOTERS)
    counts = histogram([keywords(text, _STOP) for text in voters.responses(question.text, slots)])
    widths = gaps(counts, 3)
    size = widths.index(max(widths)) + 1
    words = sorted(sorted(counts, key=lambda word: (-counts[word], word))[:size])
    texts = (
        voters.final(question.text, ()),
        completed(model, [PROMPT.of(slots[:PUBLIC_DOCUMENTS], question.text)], 4)[0],
        voters.final(question.text, words),
    )
    for arm, text in zip(BASELINES, texts, strict=True):
        right = question.answer in text.split()
        yield Asked(seed, arm, None, question.support, question.kind, right)


def _said(answer: TokenAnswer | KeywordAnswer) -> tuple[str, int]:
    if isinstance(answer, KeywordAnswer):
        return answer.text, len(answer.keywords or ())
    return VOCABULARY.text(answer.tokens), answer.private


def _key(*parts: object) -> bytes:
    return hashlib.sha256(repr(("reproduce generation", *parts)).encode()).digest()


ACCOUNTS = (1, 2, 5, 10, 20)
USES = 2
"""M; each account asks as many questions."""
EPSILON = 8
"""M eps_q."""
_VOTERS = 8
_QUESTION, _ANSWER = "treatment of bazeli ?", "mirazo"


@dataclass(frozen=True)
class Point:
    """A coalition.

    Attributes:
        accounts: k.
        auc: of the attack, simulated.
        error: its standard error.
        exact: the AUC by the mechanism's law.
        retrieval: that of the retrieval channel, where one account may learn as much.
    """

    accounts: int
    auc: float
    error: float
    exact: float
    retrieval: float


def cap(epsilon: float) -> float:
    """Return the largest AUC of any attack on an epsilon-DP mechanism, ``e^eps/(1 + e^eps)``."""
    return 1 / (1 + math.exp(-epsilon))


def retrieval_auc(accounts: int, auc: float) -> float:
    """Return the AUC of pooled Gaussian scores, ``Phi(sqrt k z)``, if it is ``auc`` for one."""
    return float(norm.cdf(math.sqrt(accounts) * norm.ppf(auc)))


def points(
    model: Transformer, worlds: int, seed: int, done: Callable[[], object] = lambda: None
) -> tuple[Point, ...]:
    """Return the attack by each coalition.

    Args:
        model: of all voters.
        worlds: simulated with the record, and as many without.
        seed: of the coins.
        done: is called after each world.
    """
    voters = LocalVoters(model)
    terms = DpRag(Fraction(EPSILON, USES), Fraction(EPSILON, USES), _VOTERS, 1, len(TOKENS), END, 1)
    others = max(range(_VOTERS), key=lambda votes: _exact(terms, votes))
    texts = [
        f"patient {name} ; treatment of bazeli : {_ANSWER} ; symptom of bazeli : kolupe ."
        for name in ("dobifu", "nakiro", "vutesa", "cimoha", "gepilu", "ribozo", "sajeku", "wonibe")
    ][: others + 1]
    voters.prepare(_QUESTION, texts)
    votes = voters.next_tokens(_QUESTION, [(text,) for text in texts], ())
    assert votes == [encode(_ANSWER)[0]] * len(texts), "the model reads its records"
    exact = _exact(terms, others)
    found = []
    for accounts in ACCOUNTS:
        samples = []
        for present in (False, True):
            rows = [Row(place, Fraction(1), text) for place, text in enumerate(texts)]
            rows = rows if present else rows[:-1]
            ratios = []
            for world in range(worlds):
                name = repr((seed, accounts, present, world)).encode()
                ratios.append(_attack(terms, rows, others, voters, accounts, name))
                done()
            samples.append(np.array(ratios))
        auc = area_under_curve(samples[1], samples[0])
        # Hanley and McNeil's largest: a Mann-Whitney AUC of two samples of this size.
        error = math.sqrt(auc * (1 - auc) / worlds)
        found.append(Point(accounts, auc, error, exact, retrieval_auc(accounts, exact)))
    return tuple(found)


def _attack(
    terms: DpRag,
    rows: Sequence[Row],
    others: int,
    voters: LocalVoters,
    accounts: int,
    name: bytes,
) -> float:
    """Return the logarithm of the likelihood ratio of all answers of all accounts."""
    stream = Murag(terms, DocumentBudgets(EPSILON, terms.epsilon), Fraction(1, 2))
    ratio = 0.0
    for number in range(accounts * USES):
        key = hashlib.sha256(name + number.to_bytes(4, "big")).digest()
        answer = stream.ask(_QUESTION, rows, voters, KeyedCoins(key)).answer
        # Later questions find all records spent, in both worlds, and tell nothing.
        if number < USES:
            ratio += _evidence(terms, others, answer.tokens[0])
    return ratio


def _evidence(terms: DpRag, others: int, token: int) -> float:
    place = {UNKNOWN: 0, encode(_ANSWER)[0]: 1}.get(token, 2)
    return math.log(_law(terms, others + 1)[place] / _law(terms, others)[place])


@cache
def _law(terms: DpRag, votes: int) -> tuple[float, float, float]:
    """Return the chances of the public token, of the record's, and of all others."""
    against = terms.voters - votes
    private = private_chance(terms, against)
    own = choice_chance(terms.vocabulary, votes, terms.epsilon_token, against=against)
    public = choice_chance(terms.vocabulary, against, terms.epsilon_token, against=votes)
    return 1 - private + private * public, private * own, private * (1 - own - public)


def _exact(terms: DpRag, others: int) -> float:
    """Return the AUC of M questions by the law, over all their outcomes."""
    laws = [_law(terms, votes) for votes in (others + 1, others)]
    outcomes = list(product(range(3), repeat=USES))
    present, absent = (
        {outcome: math.prod(law[place] for place in outcome) for outcome in outcomes}
        for law in laws
    )
    # Outcomes that say the same are ties, which count half.
    ratios = {outcome: round(present[outcome] / absent[outcome], 12) for outcome in outcomes}
    area = below = 0.0
    for ratio in sorted(set(ratios.values())):
        tied = [outcome for outcome in outcomes if ratios[outcome] == ratio]
        without = sum(absent[outcome] for outcome in tied)
        area += sum(present[outcome] for outcome in tied) * (below + without / 2)
        below += without
    return area


KINDS = ("first", "dependent", "repeated")
_RESAMPLES = 2000

COMPARISON = (
    ("MURAG, Figure 2: better than the model alone on all four data sets at a total epsilon of 10 "
     "(M = 1); the naive stream needs more than 1,000.",
     "Comparable in direction. Our questions cannot be answered without records (closed book 0), "
     "theirs partly can; our vocabulary has 213 tokens, theirs 50,272 or more, so theirs needs a "
     "larger epsilon per token; their epsilon is for add-remove, their best of 27 settings is "
     "chosen on the private data."),
    ("MURAG, Figure 3: M = 5 retrieves better and costs more; M = 1 has the better trade-off.",
     "Comparable at equal totals: rows M = 1 and M = 5 of one column."),
    ("MURAG, Table 1: precision 78.8, 72.2 % (independent), 13.3, 17.6 % (dependent) for MURAG; "
     "92.6, 94.6, 67.2, 40.7 % for MURAG-ADA.",
     "Of the documents that were read, the share that is of the best m of the whole corpus. Ours "
     "stands under `precision`. Our lexical scores tell diseases apart, so a fixed threshold does "
     "better here than with their embeddings."),
    ("DP-KSA, Figure 5: F1 21.67 without documents, 22.55 at epsilon 2, 25.18 at 8 (Llama 3.2, 3B, "
     "NQ, 80 voters).",
     "Not comparable: their epsilon is of ONE question, ours of the whole stream; and their "
     "accounting states 2.13 where what is printed costs 3.14 (docs/notes/generation.md, 3)."),
)  # fmt: skip
"""What the papers report, and what of it can be held against ours."""


@dataclass(frozen=True)
class Cell:
    """One arm at one total, on some of the questions.

    Attributes:
        arm: of `BASELINES` or `ARMS`.
        epsilon: total; None of a baseline.
        group: ``all``, a number of supporting documents, or a kind of question.
        questions: of all corpora.
        right, low, high: share of right answers, and its 95 % bootstrap interval; the unit is the
            corpus.
        charged: documents that paid, a question.
        used: that were read, a question.
        precision: of those that were read, the share of the best ones; None if none was read.
        refused: share of the questions that found no document alive; of arms that charge.
        private: tokens drawn or keywords released, a question.
        reused: share of the questions that had a stored answer.
    """

    arm: str
    epsilon: int | None
    group: str
    questions: int
    right: float
    low: float
    high: float
    charged: float
    used: float
    precision: float | None
    refused: float
    private: float
    reused: float


def cells(asked: Sequence[Asked]) -> tuple[Cell, ...]:
    """Return every arm at every total, over all questions and by group.

    Args:
        asked: of all corpora.
    """
    groups: dict[str, Callable[[Asked], bool]] = {"all": lambda each: True}
    groups |= {f"{support} documents": _supported(support) for support in SUPPORT}
    groups |= {kind: _of_kind(kind) for kind in KINDS}
    found = []
    for arm in (*BASELINES, *ARMS):
        own = [each for each in asked if each.arm == arm]
        for epsilon in dict.fromkeys(each.epsilon for each in own):
            at = [each for each in own if each.epsilon == epsilon]
            for group, belongs in groups.items():
                chosen = [each for each in at if belongs(each)]
                if chosen:
                    found.append(_cell(arm, epsilon, group, chosen))
    return tuple(found)


def _supported(support: int) -> Callable[[Asked], bool]:
    return lambda each: each.support == support


def _of_kind(kind: str) -> Callable[[Asked], bool]:
    return lambda each: each.kind == kind


def _cell(arm: str, epsilon: int | None, group: str, asked: Sequence[Asked]) -> Cell:
    def mean(values: Iterable[float]) -> float:
        return float(np.mean(list(values)))

    low, high = _interval(asked)
    used = sum(each.used for each in asked)
    charging = arm.startswith("MURAG")
    return Cell(
        arm, epsilon, group, len(asked), mean(each.right for each in asked), low, high,
        mean(each.charged for each in asked), mean(each.used for each in asked),
        sum(each.precise for each in asked) / used if used else None,
        mean(charging and not each.charged and not each.reused for each in asked),
        mean(each.private for each in asked),
        mean(each.reused for each in asked),
    )  # fmt: skip


def _interval(asked: Sequence[Asked]) -> tuple[float, float]:
    """Return the 2.5 and 97.5 % points of the share under resampling of whole corpora."""
    seeds = sorted({each.seed for each in asked})
    right = np.array([sum(e.right for e in asked if e.seed == seed) for seed in seeds])
    count = np.array([sum(e.seed == seed for e in asked) for seed in seeds])
    drawn = np.random.default_rng(1).integers(len(seeds), size=(_RESAMPLES, len(seeds)))
    shares = right[drawn].sum(axis=1) / count[drawn].sum(axis=1)
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(low), float(high)


def text(found: Sequence[Cell], attack: Sequence[Point]) -> str:
    """Return the tables as text.

    Args:
        found: of `cells`.
        attack: by each coalition.
    """
    lines = ["Right answers (95 % bootstrap interval over corpora), by total epsilon", ""]
    epsilons = sorted({each.epsilon for each in found if each.epsilon is not None})
    at = {(each.arm, each.epsilon, each.group): each for each in found}
    lines.append(f"{'':24}" + "".join(f"{each:>18}" for each in epsilons))
    lines += [f"{arm:24}{_share(at[arm, None, 'all']):>18}  (no epsilon)" for arm in BASELINES]
    lines += [
        f"{arm:24}" + "".join(f"{_share(at[arm, each, 'all']):>18}" for each in epsilons)
        for arm in ARMS
    ]
    most = epsilons[-1]
    groups = list(dict.fromkeys(each.group for each in found if each.group != "all"))
    lines += ["", f"By group at epsilon {most}", ""]
    lines.append(f"{'':24}" + "".join(f"{each:>15}" for each in groups))
    for arm in (*BASELINES, *ARMS):
        epsilon = None if arm in BASELINES else most
        shares = [at.get((arm, epsilon, group)) for group in groups]
        lines.append(
            f"{arm:24}" + "".join(f"{'-' if each is None else f'{each.right:.3f}':>15}"
                                  for each in shares)
        )  # fmt: skip
    lines += ["", f"Money at epsilon {most}, a question", ""]
    lines.append(
        f"{'':24}{'charged':>10}{'used':>8}{'charged/used':>14}{'refused':>10}{'precision':>11}"
        f"{'private':>9}{'reused':>8}"
    )
    for arm in ARMS:
        each = at[arm, most, "all"]
        ratio = f"{each.charged / each.used:.2f}" if each.used and each.charged else "-"
        precision = "-" if each.precision is None else f"{each.precision:.3f}"
        lines.append(
            f"{arm:24}{each.charged:>10.1f}{each.used:>8.1f}{ratio:>14}{each.refused:>10.3f}"
            f"{precision:>11}{each.private:>9.2f}{each.reused:>8.2f}"
        )
    lines += [
        "", f"Membership of one record at M eps_q = {EPSILON}, M = {USES}: AUC, at most "
        f"{cap(EPSILON):.3f} for any attack", "",
        f"{'accounts':>8}{'simulated':>20}{'by the law':>12}{'retrieval channel':>19}",
    ]  # fmt: skip
    for point in attack:
        simulated = f"{point.auc:.3f} ({point.error:.3f})"
        lines.append(
            f"{point.accounts:>8}{simulated:>20}{point.exact:>12.3f}{point.retrieval:>19.3f}"
        )
    lines += ["", "The papers, and what of theirs can be held against ours", ""]
    for theirs, judged in COMPARISON:
        lines += [f"- {theirs}", f"  {judged}"]
    return "\n".join(lines) + "\n"


def _share(cell: Cell) -> str:
    return f"{cell.right:.3f} ({cell.low:.2f}-{cell.high:.2f})"


def document(found: Sequence[Cell], attack: Sequence[Point], terms: Any) -> dict[str, Any]:
    """Return everything as a JSON value.

    Args:
        found, attack: as of `text`.
        terms: of the run, a JSON value.
    """
    return {
        "format": "ragaudit/v1/reproduce-generation",
        "terms": terms,
        "cells": [asdict(each) for each in found],
        "membership": {
            "epsilon": EPSILON,
            "uses": USES,
            "cap": cap(EPSILON),
            "points": [asdict(each) for each in attack],
        },
        "papers": [{"reported": theirs, "comparable": judged} for theirs, judged in COMPARISON],
    }


_STYLES = (":", "--", "-.")
_LOOKS = {
    **{arm: ("o-", color) for arm, color in zip(PAYING, COLORS, strict=True)},
    **{arm: ("s--", COLORS[PAYING.index(base)]) for arm, base in REUSING.items()},
}
"""Line and color of each arm: stored answers are dashed."""


def figures(found: Sequence[Cell], attack: Sequence[Point]) -> dict[str, bytes]:
    """Return PNG and SVG files by name.

    Args:
        found: of `generation_results.cells`.
        attack: by each coalition.
    """
    return {**_utility(found), **_groups(found), **_membership(attack)}


def _utility(found: Sequence[Cell]) -> dict[str, bytes]:
    with axes(
        "100 questions on invented records", "total epsilon of the stream", "right answers"
    ) as (figure, place):
        for arm in ARMS:
            line, color = _LOOKS[arm]
            own = [each for each in found if each.arm == arm and each.group == "all"]
            totals = [each.epsilon or 0 for each in own]
            place.plot(totals, [each.right for each in own], line, color=color, label=arm)
            place.fill_between(
                totals, [each.low for each in own], [each.high for each in own],
                color=color, alpha=0.2, linewidth=0,
            )  # fmt: skip
        for arm, style in zip(BASELINES, _STYLES, strict=True):
            (own_cell,) = [each for each in found if each.arm == arm and each.group == "all"]
            place.axhline(own_cell.right, linestyle=style, color=COLORS[5], label=arm)
        place.set_ylim(-0.02, 1.02)
        place.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return render(figure, "utility")


def _groups(found: Sequence[Cell]) -> dict[str, bytes]:
    groups = list(dict.fromkeys(each.group for each in found if each.group != "all"))
    with panels(
        "Right answers by supporting documents and kind of question", "total epsilon",
        "right answers", groups,
    ) as (figure, places):  # fmt: skip
        for group, place in zip(groups, places, strict=True):
            for arm in ARMS:
                line, color = _LOOKS[arm]
                own = [each for each in found if each.arm == arm and each.group == group]
                place.plot(
                    [each.epsilon or 0 for each in own], [each.right for each in own],
                    line, color=color, label=arm, markersize=3,
                )  # fmt: skip
        places[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return render(figure, "groups")


def _membership(attack: Sequence[Point]) -> dict[str, bytes]:
    with axes(
        "Is one record there? A coalition asks", "accounts that pool their answers", "AUC"
    ) as (figure, place):
        accounts = [each.accounts for each in attack]
        place.errorbar(
            accounts, [each.auc for each in attack], yerr=[2 * each.error for each in attack],
            fmt="o-", color=COLORS[0], capsize=3, label="generation channel (±2 s.e.)",
        )  # fmt: skip
        place.plot(
            accounts, [each.retrieval for each in attack], "s--", color=COLORS[1],
            label="retrieval channel, as much for one account",
        )  # fmt: skip
        place.axhline(cap(EPSILON), linestyle=":", color=COLORS[5],
                      label=f"any attack at epsilon {EPSILON}")  # fmt: skip
        place.set_ylim(0.48, 1.02)
        place.legend(loc="best")
        return render(figure, "membership")
