"""What generated answers cost: keyword sets (DP-KSA), and the whole channel of a window.

One question is ``delta_test``-approximately of Rényi divergence ``R_choice(α) + α/(2 sigma²)``, of
a bounded-range choice and a Gaussian test; questions add up; ``delta = delta_conversion + questions
· delta_test``. The two deltas are two numbers: the source paper uses one name for both. Notation
and proofs: docs/notes/generation.md.

The channel costs the same for any number of accounts (spec 11.6, 10.10): every document has a
budget of M uses, whoever asks. So no number of accounts enters, and no estimate of who acts
together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, Self

from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.encoding.text import ceil_decimal, parse_ratio
from ragaudit.privacy.accounting.renyi import RenyiBound, canonne_inner
from ragaudit.privacy.normal import cdf, decimal_of, precise, quantile
from ragaudit.privacy.numbers import Number, count, decimal, exact

PLACES = 6
"""After the point, of an epsilon that is stated."""
CHOICE_ROUNDING = Fraction(1, 2**61)
"""What the rounding of weights adds to the epsilon of a choice at most (spec 11.2)."""
_STEPS = 100
_GRID = [Decimal(shift) / 4 for shift in range(-36, 53)]
_UP = 1 + Decimal("1e-60")


@precise
def bounded_range(order: Number, epsilon: Number) -> Decimal:
    """Return the least Rényi divergence that holds for every epsilon-bounded-range mechanism.

    ``max_t ln(Q e^(αt) + (1-Q) e^(α(t-ε)))/(α-1)`` with ``Q = (e^-t - e^-ε)/(1 - e^-ε)``; its one
    critical point is where ``e^t = (α-1)(1 - e^-(αε)) / (α (e^-ε - e^-(αε)))``.

    Args:
        order: alpha, 1 + 10^-9 to 10^6.
        epsilon: 10^-9 to 10^3.

    Raises:
        InvalidArgumentError: a value out of its range.
    """
    alpha, eps = _read(order, epsilon)
    low, lower = (-eps).exp(), (-alpha * eps).exp()
    peak = (alpha - 1) * (1 - lower) / (alpha * (low - lower))
    # Where the critical point lies outside [0, eps], the largest value is at an end, and is 0.
    at = min(max(peak.ln(), Decimal(0)), eps)
    first = ((alpha - 1) * at).exp() * (1 - lower)
    second = (alpha * at).exp() * (low - lower)
    return max(Decimal(0), ((first - second) / (1 - low)).ln() / (alpha - 1)) * _UP


@precise
def pure_or_bounded_range(order: Number, epsilon: Number) -> Decimal:
    """Return the smaller of two older bounds: ``αε²/8``, and that of every pure-DP mechanism.

    ``ln((sinh(αε) - sinh((α-1)ε))/sinh ε)/(α-1)`` (Theorem A.9 of the source paper, with the
    factor of a bounded range). Kept for comparison with what papers report.

    Args:
        order, epsilon: as for :func:`bounded_range`.
    """
    alpha, eps = _read(order, epsilon)

    def sinh(x: Decimal) -> Decimal:
        return (x.exp() - (-x).exp()) / 2

    pure = ((sinh(alpha * eps) - sinh((alpha - 1) * eps)) / sinh(eps)).ln() / (alpha - 1)
    return min(alpha * eps * eps / 8, pure) * _UP


def _read(order: Number, epsilon: Number) -> tuple[Decimal, Decimal]:
    # Nearer to 1 and to 0, differences would lose too many of 80 digits.
    least = Fraction(1, 10**9)
    alpha = decimal(order, "order", least=1 + least, most=10**6)
    return alpha, decimal(epsilon, "epsilon", least=least, most=10**3)


@dataclass(frozen=True)
class KeywordSetLoss:
    """The loss of a number of questions, for one document that is relevant to all of them.

    Attributes:
        epsilon_choice: of the choice of the number of keywords, 10^-9 to 10^3.
        sigma: of the test; the noise has a deviation of 2 sigma; above 0.
        questions: >= 1.
        choice: the divergence of one choice at an order; by default the least valid one.

    Raises:
        InvalidArgumentError: a value out of its range.
    """

    epsilon_choice: Fraction
    sigma: Fraction
    questions: int = 1
    choice: Callable[[Number, Number], Decimal] = bounded_range

    def __post_init__(self) -> None:
        least = Fraction(1, 10**9)
        choice = exact(self.epsilon_choice, "epsilon_choice", least=least, most=1000)
        object.__setattr__(self, "epsilon_choice", choice)
        object.__setattr__(self, "sigma", exact(self.sigma, "sigma", above=0))
        count(self.questions, "questions")

    @precise
    def divergence(self, order: Number) -> Decimal:
        """Return the Rényi divergence of all questions at an order above 1, tests that fail aside.

        Args:
            order: alpha, above 1 and at most 10^6.
        """
        alpha = decimal(order, "order", above=1, most=10**6)
        test = alpha / (2 * decimal_of(self.sigma) ** 2)
        return self.questions * (self.choice(alpha, self.epsilon_choice) + test)

    @precise
    def epsilon(self, delta_conversion: Number, *, improved: bool = True) -> RenyiBound:
        """Return the least epsilon over all orders, at ``delta_conversion``.

        The whole delta is ``delta_conversion + questions · delta_test``.

        Args:
            delta_conversion: in (0, 1).
            improved: convert as Canonne, Kamath and Steinke; else as Mironov.
        """
        goal = decimal(delta_conversion, "delta_conversion", above=0, below=1)

        def at(shift: Decimal) -> Decimal:
            order = 1 + shift.exp()
            inner = canonne_inner(goal, order) if improved else -goal.ln()
            return max(Decimal(0), self.divergence(order) + inner / (order - 1))

        # Any order gives a valid bound: a search that ends elsewhere is only not the tightest. A
        # least of two curves may have two valleys, so a grid says in which one to search.
        best = min(_GRID, key=at)
        low, high = best - 1, best + 1
        for _ in range(_STEPS):
            first, second = low + (high - low) / 3, high - (high - low) / 3
            if at(first) <= at(second):
                high = second
            else:
                low = first
        return RenyiBound(at(low) * _UP, 1 + low.exp())


def channel_loss(
    epsilon_choice: Fraction, sigma: Fraction, uses: int, delta_conversion: Fraction
) -> Fraction:
    """Return the epsilon of so many uses of a document, rounded up to 6 decimal places.

    What rounding adds to the weights of a choice (spec 11.2) is in it.

    Args:
        epsilon_choice, sigma: as of `KeywordSetLoss`.
        uses: how often the document pays at most, >= 1.
        delta_conversion: in (0, 1).

    Raises:
        InvalidArgumentError: one of them is out of range.
    """
    rounded = exact(epsilon_choice, "epsilon_choice") + CHOICE_ROUNDING
    loss = KeywordSetLoss(rounded, sigma, count(uses, "uses"))
    return _stated(loss, exact(delta_conversion, "delta_conversion", above=0, below=1))


# A policy, its answers and its verdict ask for the same one; a search takes 0.1 s.
@lru_cache(maxsize=256)
def _stated(loss: KeywordSetLoss, delta_conversion: Fraction) -> Fraction:
    found = loss.epsilon(delta_conversion).epsilon
    return Fraction(ceil_decimal(Fraction(found), PLACES))


@dataclass(frozen=True)
class Calibration:
    """Parameters of one question whose whole loss is a given epsilon.

    Attributes:
        rho: of zCDP, half of it for the choice and half for the test.
        epsilon_choice: of the choice.
        sigma: of the test; the deviation of its noise is twice that.
    """

    rho: Decimal
    epsilon_choice: Decimal
    sigma: Decimal

    @precise
    def even_gap(self, delta_test: Number) -> Decimal:
        """Return the gap, in responses, that passes the test half of the time.

        Args:
            delta_test: in (0, 1/2].
        """
        goal = decimal(delta_test, "delta_test", above=0, most=Fraction(1, 2))
        return 2 + 2 * self.sigma * quantile(goal)


@precise
def calibrated(epsilon: Number, delta_conversion: Number, questions: int = 1) -> Calibration:
    """Return the parameters with which so many questions together cost an epsilon.

    By zCDP and Mironov's conversion in closed form, ``rho + 2 sqrt(rho ln(1/delta))``.

    Args:
        epsilon: above 0, at most 10^3.
        delta_conversion: in (0, 1).
        questions: >= 1, over which rho is divided evenly.
    """
    total = decimal(epsilon, "epsilon", above=0, most=1000)
    logarithm = -decimal(delta_conversion, "delta_conversion", above=0, below=1).ln()
    # The difference of two roots, without the loss of digits that taking it would bring.
    root = total / ((logarithm + total).sqrt() + logarithm.sqrt())
    rho = root * root / count(questions, "questions")
    return Calibration(rho, 2 * rho.sqrt(), 1 / rho.sqrt())


@precise
def pass_probability(gap: int, sigma: Number, delta_test: Number) -> Decimal:
    """Return how often a gap passes the test, with continuous noise.

    Args:
        gap: of two neighbouring counts, in responses, >= 0.
        sigma: above 0.
        delta_test: in (0, 1/2].
    """
    deviation = 2 * decimal(sigma, "sigma", above=0)
    goal = decimal(delta_test, "delta_test", above=0, most=Fraction(1, 2))
    return cdf((max(2, count(gap, "gap", least=0)) - 2) / deviation - quantile(goal))


_PLACES: Final = 40  # of numbers as small as 2^-100


@dataclass(frozen=True, slots=True)
class ChannelEpsilon:
    """Pure differential privacy of all answers of a window's generation channel together.

    Attributes:
        mechanism: "murag" or "murag-ada", or "naive", where every row pays for every question.
        uses: M, how often a row may pay.
        question: eps_q, of one question for a row that is charged.
        group: g, rows of one document at most.
        draws: coins of all answers of the window, at most.
        private: private tokens of one answer, at most.
    """

    mechanism: str
    uses: int
    question: Fraction
    group: int
    draws: int
    private: int

    def __post_init__(self) -> None:
        if self.mechanism not in ("murag", "murag-ada", "naive"):
            raise InvalidArgumentError(
                "not a mechanism", where="mechanism", expected="murag, murag-ada or naive"
            )
        count(self.uses, "uses")
        exact(self.question, "question", above=0)
        count(self.group, "group")
        count(self.draws, "draws", least=0)
        count(self.private, "private", least=0)

    @property
    def replace_one_null(self) -> Fraction:
        """g M eps_q: one document changed to or from null rows, or added, or removed."""
        return self.group * self.uses * self.question

    @property
    def replace_one(self) -> Fraction:
        """2 g M eps_q: the document that goes and the one that comes have budgets of their own.

        Under NAIVE no row has one, and a question sees both as one changed row: g M eps_q.
        """
        return (1 if self.mechanism == "naive" else 2) * self.replace_one_null

    @property
    def rounding(self) -> Fraction:
        """What rounding the weights of choices adds to `replace_one_null` at most (spec 11.2)."""
        return self.group * self.uses * self.private * Fraction(1, 2**61)

    @property
    def distance(self) -> Fraction:
        """Total variation between the coins and their exact laws, of all answers, at most."""
        return self.draws * Fraction(1, 2**100)

    def over(self, windows: int) -> Fraction:
        """Return `replace_one_null` of so many windows with the same documents: budgets renew.

        Args:
            windows: >= 1.
        """
        return count(windows, "windows") * self.replace_one_null

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a verdict states them: exact fractions, tiny ones rounded up."""
        return {
            "mechanism": self.mechanism,
            "uses": self.uses,
            "epsilon_question": str(Fraction(self.question)),
            "group_size": self.group,
            "replace_one_null": str(self.replace_one_null),
            "replace_one": str(self.replace_one),
            "draws": self.draws,
            "private_tokens": self.private,
            "rounding": ceil_decimal(self.rounding, _PLACES),
            "distance": ceil_decimal(self.distance, _PLACES),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the numbers of a JSON object, the strict inverse of `to_json`; MalformedError."""
        match value:
            case {
                "mechanism": str(mechanism),
                "uses": int(uses),
                "epsilon_question": str(question),
                "group_size": int(group),
                "draws": int(draws),
                "private_tokens": int(private),
            }:
                try:
                    found = cls(mechanism, uses, parse_ratio(question), group, draws, private)
                except MalformedError as error:
                    raise MalformedError("not a channel's epsilon", where="generation") from error
                if found.to_json() == value:
                    return found
        raise MalformedError("not a channel's epsilon", where="generation")


class Loss(NamedTuple):
    """Of all answers of a window together.

    Attributes:
        epsilon: rounded up.
        delta: exact.
    """

    epsilon: Fraction
    delta: Fraction

    def to_json(self) -> dict[str, str]:
        """Return the numbers as a verdict states them."""
        return {"epsilon": ceil_decimal(self.epsilon, PLACES), "delta": str(self.delta)}


@dataclass(frozen=True)
class KeywordChannelEpsilon:
    """Approximate differential privacy of a channel that answers by DP-KSA under MURAG.

    A document is one row. Rényi divergences of its uses add up at one order, and are converted
    once; a replaced document is two, each with its own uses, and changes one slot of a question
    whichever of the two is relevant to it.

    Attributes:
        uses: M, how often a row may pay.
        epsilon_choice, sigma, delta_test: of one question, as of `DpKsa`.
        delta_conversion: of the conversion.
        draws: coins of all answers of the window, at most.
    """

    uses: int
    epsilon_choice: Fraction
    sigma: Fraction
    delta_test: Fraction
    delta_conversion: Fraction
    draws: int

    def __post_init__(self) -> None:
        count(self.uses, "uses")
        exact(self.epsilon_choice, "epsilon_choice", above=0)
        exact(self.sigma, "sigma", above=0)
        exact(self.delta_test, "delta_test", above=0, most=Fraction(1, 2))
        exact(self.delta_conversion, "delta_conversion", above=0, below=1)
        count(self.draws, "draws", least=0)

    @cached_property
    def replace_one_null(self) -> Loss:
        """One document changed to or from a null row, or added, or removed: M uses."""
        return self._of(self.uses)

    @cached_property
    def replace_one(self) -> Loss:
        """One document replaced by another: 2 M uses, composed before they are converted."""
        return self._of(2 * self.uses)

    @property
    def distance(self) -> Fraction:
        """Total variation between the coins and their exact laws, of all answers, at most."""
        return self.draws * Fraction(1, 2**100)

    def over(self, windows: int) -> Loss:
        """Return `replace_one_null` of so many windows with the same documents: budgets renew.

        Args:
            windows: >= 1.
        """
        epsilon, delta = self.replace_one_null
        return Loss(count(windows, "windows") * epsilon, windows * delta)

    def _of(self, uses: int) -> Loss:
        epsilon = channel_loss(self.epsilon_choice, self.sigma, uses, self.delta_conversion)
        return Loss(epsilon, self.delta_conversion + uses * self.delta_test)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a verdict states them: exact fractions, others rounded up."""
        return {
            "mechanism": "murag",
            "answerer": "dp-ksa",
            "uses": self.uses,
            "epsilon_choice": str(Fraction(self.epsilon_choice)),
            "sigma": str(Fraction(self.sigma)),
            "delta_test": str(Fraction(self.delta_test)),
            "delta_conversion": str(Fraction(self.delta_conversion)),
            "group_size": 1,
            "replace_one_null": self.replace_one_null.to_json(),
            "replace_one": self.replace_one.to_json(),
            "draws": self.draws,
            "distance": ceil_decimal(self.distance, _PLACES),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the numbers of a JSON object, the strict inverse of `to_json`; MalformedError."""
        match value:
            case {
                "uses": int(uses),
                "epsilon_choice": str(choice),
                "sigma": str(sigma),
                "delta_test": str(test),
                "delta_conversion": str(conversion),
                "draws": int(draws),
            }:
                try:
                    one, test_noise = parse_ratio(choice), parse_ratio(sigma)
                    deltas = parse_ratio(test), parse_ratio(conversion)
                    found = cls(uses, one, test_noise, *deltas, draws)
                    same = found.to_json() == value
                except MalformedError as error:
                    raise MalformedError("not a channel's epsilon", where="generation") from error
                if same:
                    return found
        raise MalformedError("not a channel's epsilon", where="generation")


ChannelCosts = ChannelEpsilon | KeywordChannelEpsilon


def read_channel(value: object) -> ChannelCosts:
    """Return what a channel costs, of either kind, as a verdict states it; MalformedError."""
    if isinstance(value, dict) and "answerer" in value:
        return KeywordChannelEpsilon.from_json(value)
    return ChannelEpsilon.from_json(value)
