"""Whether one record is there: the best question stream that we know, by any number of accounts.

The attacker knows all other records and the model, and asks for what the record would change: a
disease whose voters are as nearly divided as its other records allow. One token is drawn for each
question, which spends the whole eps_q on it; the score is the exact likelihood ratio.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
from ragaudit.lab.generation.transformer import Transformer
from ragaudit.lab.generation.vocabulary import END, TOKENS, UNKNOWN, encode
from ragaudit.lab.generation.voters import LocalVoters
from ragaudit.lab.risk.ranking import area_under_curve
from ragaudit.privacy.mechanisms.dp_rag import DpRag
from ragaudit.privacy.mechanisms.feasibility import choice_chance, private_chance
from ragaudit.privacy.mechanisms.retrieval import Row
from ragaudit.privacy.mechanisms.samplers import KeyedCoins
from ragaudit.privacy.mechanisms.streams import DocumentBudgets, Murag
from scipy.stats import norm

__all__ = ["ACCOUNTS", "EPSILON", "USES", "Point", "cap", "points", "retrieval_auc"]

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
