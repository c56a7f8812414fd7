"""The collusion paper's equations, each with its residual written out and its range checked.

    ScoreReleaseClass(...)            Definition A.1 with (3.1)
        .sigma(...)                   (3.4)
        .coalition(k, delta_comp)     (3.2), Theorem 3.4
        .audit(k_max, delta_policy)   (5.2)
        .gaussian(k)                  what its noise really gives, exactly
    advanced_composition(...)         Lemma 3.2
    renyi_closed_form(...)            (3.6), Theorem 3.9
    membership_lower_bound(...)       (3.10)
    exposure(...)                     why add-remove has no guarantee here

A call outside an equation's range raises; nothing is extrapolated. Nothing here decides a verdict:
these are bounds for noise of the paper's class alone, n per-query Gaussian mechanisms calibrated by
(3.1) and (3.4), and loose (docs/notes/accounting.md §6, §13).
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from ragaudit.encoding.errors import InvalidArgumentError, RefusedError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting.events import MAX_QUERIES
from ragaudit.privacy.guarantees import ApproximateDp, GaussianDp
from ragaudit.privacy.normal import PI, decimal_of, precise
from ragaudit.privacy.numbers import Number, count, decimal, exact, instance
from ragaudit.privacy.sample import detection

# Every epsilon is raised by this share: far above what 80 digits lose, far below any rounding.
_UP = Decimal("1." + 59 * "0" + "1")

# 2 Phi(z) - 1 >= z / sqrt(2 pi) holds up to here (claim 23).
_LARGEST_HALF_SHIFT = Decimal("2.47304")


class ClosedForm(NamedTuple):
    """Equation (5.2) with its residual written out, as a verdict prints it beside the exact value.

    Attributes:
        leading: ``sqrt(k) eps_acc sqrt(ln(1/delta_comp)/ln(1/delta_acc))``.
        residual: ``k n eps_q (e^eps_q - 1)``, what Lemma 3.2 gives exactly.
        residual_bound: ``k eps_acc²/ln(1/delta_acc)``, the paper's bound of it (eps_q <= 1.25).
    """

    leading: Decimal
    residual: Decimal
    residual_bound: Decimal


@precise
def per_query(epsilon_acc: Fraction, delta_acc: Fraction, queries: int) -> tuple[Decimal, Fraction]:
    """Return (eps_q, delta_q) of equation (3.1) for n = ``queries`` per account."""
    scale = (2 * queries * _log_inverse(delta_acc)).sqrt()
    return decimal_of(epsilon_acc) / scale, delta_acc / queries


@precise
def class_sigma(
    epsilon_acc: Fraction, delta_acc: Fraction, queries: int, sensitivity: Decimal
) -> Decimal:
    """Return the least sigma of the class, equation (3.4), in units of ``sensitivity``.

    Args:
        epsilon_acc: > 0.
        delta_acc: between 0 and 1.
        queries: n per account.
        sensitivity: of one query, > 0.
    """
    eps_q, delta_q = per_query(epsilon_acc, delta_acc, queries)
    return sensitivity * (2 * _log_inverse(delta_q / Fraction(5, 4))).sqrt() / eps_q


def well_formed(delta_policy: Fraction, coalition: int, delta_acc: Fraction) -> bool:
    """Return whether ``delta_policy > k delta_acc``, compared as exact rationals.

    In binary floating point 1e-5 > 10·1e-6 is true; as numbers it is false.
    """
    return delta_policy > coalition * delta_acc


@precise
def closed_form(
    epsilon_acc: Fraction, delta_acc: Fraction, queries: int, coalition: int, delta_comp: Fraction
) -> ClosedForm:
    """Return (5.2) for ``coalition`` accounts of ``queries`` queries each.

    Args:
        epsilon_acc: > 0.
        delta_acc: between 0 and 1.
        queries: n per account.
        coalition: k, number of accounts.
        delta_comp: the composition's share of delta, > 0: ``delta_policy - k delta_acc``.
    """
    eps = decimal_of(epsilon_acc)
    log_acc = _log_inverse(delta_acc)
    eps_q, _ = per_query(epsilon_acc, delta_acc, queries)
    leading = eps * (coalition * _log_inverse(delta_comp) / log_acc).sqrt()
    residual = coalition * queries * eps_q * (eps_q.exp() - 1)
    return ClosedForm(leading, residual, coalition * eps * eps / log_acc)


def _log_inverse(value: Fraction) -> Decimal:
    return -decimal_of(value).ln()


class _Terms:
    """Two terms whose sum is an epsilon at ``delta``."""

    __slots__ = ()
    leading: Decimal
    residual: Decimal
    delta: Fraction
    relation: NeighboringRelation

    @precise
    def guarantee(self) -> ApproximateDp:
        """Return (leading + residual, delta)-DP, rounded up: what the theorem proves."""
        epsilon = (self.leading + self.residual) * _UP
        return ApproximateDp(Fraction(epsilon), self.delta, self.relation)


@dataclass(frozen=True, slots=True)
class CollusionBound(_Terms):
    """A composition bound in its parts.

    Attributes:
        leading: ``sqrt(2 m ln(1/delta')) eps_q``, the term that the paper prints.
        residual: ``m eps_q (e^eps_q - 1)``, the rest of Lemma 3.2, exactly.
        residual_bound: ``2 m eps_q²``, the paper's bound of it.
        delta: ``m delta_q + delta'``, the joint delta at which their sum holds.
        relation: of the composed releases.
    """

    leading: Decimal
    residual: Decimal
    residual_bound: Decimal
    delta: Fraction
    relation: NeighboringRelation


@dataclass(frozen=True, slots=True)
class RenyiClosedForm(_Terms):
    """Equation (3.6) in its parts: ``mu sqrt(2 ln(1/delta)) + mu²/2`` for mu-GDP noise.

    Attributes:
        leading: ``sensitivity sqrt(2 m ln(1/delta))/sigma``.
        residual: ``m sensitivity²/(2 sigma²)``.
        order: the order alpha* at which it is attained.
        delta: at which their sum holds.
        relation: under which the sensitivity is stated.
    """

    leading: Decimal
    residual: Decimal
    order: Decimal
    delta: Fraction
    relation: NeighboringRelation


@dataclass(frozen=True, slots=True)
class ScoreReleaseClass:
    """Definition A.1: n Gaussian mechanisms per account, each calibrated by (3.1).

    Attributes:
        epsilon_acc: advertised per account, > 0.
        delta_acc: advertised per account, between 0 and 1.
        queries: n per account, large enough that ``eps_q < 1``: the Gaussian mechanism's
            classical bound and Lemma 3.2 end there; that is ``n > eps_acc²/(2 ln(1/delta_acc))``.
        relation: under which the noise's sensitivity is stated.

    Raises:
        InvalidArgumentError: a value out of its range.
    """

    epsilon_acc: Fraction
    delta_acc: Fraction
    queries: int
    relation: NeighboringRelation

    def __post_init__(self) -> None:
        read = {
            "epsilon_acc": exact(self.epsilon_acc, "epsilon_acc", above=0),
            "delta_acc": exact(self.delta_acc, "delta_acc", above=0, below=1),
            "queries": count(self.queries, "queries"),
            "relation": NeighboringRelation.of(self.relation),
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)
        if self.epsilon_q() >= 1:
            raise InvalidArgumentError(
                "eps_q of (3.1) is not below 1",
                where="queries",
                expected="more than epsilon_acc²/(2 ln(1/delta_acc))",
            )

    def epsilon_q(self) -> Decimal:
        """Return eps_q of (3.1): ``eps_acc / sqrt(2 n ln(1/delta_acc))``."""
        return per_query(self.epsilon_acc, self.delta_acc, self.queries)[0]

    def delta_q(self) -> Fraction:
        """Return delta_q of (3.1): ``delta_acc / n``."""
        return self.delta_acc / self.queries

    @precise
    def sigma(self, sensitivity: Number) -> Decimal:
        """Return the noise of (3.4), rounded up, in the units of ``sensitivity``.

        Args:
            sensitivity: > 0.

        Raises:
            InvalidArgumentError: out of range.
        """
        step = decimal(sensitivity, "sensitivity", above=0)
        return class_sigma(self.epsilon_acc, self.delta_acc, self.queries, step) * _UP

    def coalition(self, accounts: int, delta_comp: Number) -> CollusionBound:
        """Return (3.2) for k accounts of n queries at joint delta ``delta_comp + k delta_acc``.

        The leading term is ``sqrt(k) eps_acc sqrt(ln(1/delta_comp)/ln(1/delta_acc))``, the
        residual is between ``k eps_acc²/(2 ln(1/delta_acc))`` and twice that (claim 21).

        Args:
            accounts: k, at least 1.
            delta_comp: the composition's share, between 0 and 1.

        Raises:
            InvalidArgumentError: a value out of range, or a joint delta of 1 or more.
        """
        count(accounts, "accounts")
        return advanced_composition(
            self.epsilon_q(), self.delta_q(), accounts * self.queries, delta_comp, self.relation
        )

    def audit(self, accounts: int, delta_policy: Number) -> CollusionBound:
        """Return (5.2): the bound at joint delta ``delta_policy`` exactly.

        Args:
            accounts: k, at least 1.
            delta_policy: between 0 and 1.

        Raises:
            InvalidArgumentError: a value out of range.
            RefusedError: ``delta_policy <= k delta_acc``; nothing is left for the composition.
        """
        count(accounts, "accounts")
        target = exact(delta_policy, "delta_policy", above=0, below=1)
        if not well_formed(target, accounts, self.delta_acc):
            raise RefusedError(
                "no share of delta is left",
                where="delta_policy",
                expected=f"above {accounts} times delta_acc",
            )
        return self.coalition(accounts, target - accounts * self.delta_acc)

    @precise
    def gaussian(self, accounts: int) -> GaussianDp:
        """Return the exact guarantee of k·n releases under the noise of (3.4), mu rounded up.

        Args:
            accounts: k, at least 1.

        Raises:
            InvalidArgumentError: out of range.
        """
        count(accounts, "accounts")
        mu = decimal_of(Fraction(accounts * self.queries)).sqrt() / self.sigma(Fraction(1))
        return GaussianDp(Fraction(mu * _UP * _UP), self.relation)


@precise
def advanced_composition(
    epsilon_q: Number,
    delta_q: Number,
    times: int,
    delta_comp: Number,
    relation: NeighboringRelation,
) -> CollusionBound:
    """Return Lemma 3.2: ``times``-fold adaptive composition of (epsilon_q, delta_q)-DP.

    Args:
        epsilon_q: above 0, at most 1.
        delta_q: 0 to 1.
        times: at least 1.
        delta_comp: delta', between 0 and 1.
        relation: of the releases.

    Raises:
        InvalidArgumentError: a value out of range, or ``times delta_q + delta' >= 1``.
    """
    loss = decimal(epsilon_q, "epsilon_q", above=0, most=1)
    share = exact(delta_comp, "delta_comp", above=0, below=1)
    kind = NeighboringRelation.of(relation)
    delta = count(times, "times") * exact(delta_q, "delta_q", least=0, most=1) + share
    if delta >= 1:
        raise InvalidArgumentError("the joint delta is not below 1", where="delta_comp")
    leading = (-2 * times * decimal_of(share).ln()).sqrt() * loss
    residual = times * loss * (loss.exp() - 1)
    return CollusionBound(leading, residual, 2 * times * loss**2, delta, kind)


@precise
def renyi_closed_form(
    sigma: Number, sensitivity: Number, queries: int, delta: Number, relation: NeighboringRelation
) -> RenyiClosedForm:
    """Return (3.6): the best order of (R3) for ``queries`` Gaussian releases.

    Args:
        sigma: standard deviation of the noise, > 0.
        sensitivity: of one release, in the same units, > 0.
        queries: m = k·n, at least 1.
        delta: between 0 and 1.
        relation: of the sensitivity.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    noise = decimal(sigma, "sigma", above=0)
    step = decimal(sensitivity, "sensitivity", above=0)
    target = exact(delta, "delta", above=0, below=1)
    mu = step * Decimal(count(queries, "queries")).sqrt() / noise
    spread = (-2 * decimal_of(target).ln()).sqrt()
    kind = NeighboringRelation.of(relation)
    return RenyiClosedForm(mu * spread, mu * mu / 2, 1 + spread / mu, target, kind)


@precise
def renyi_sigma(epsilon_acc: Number, delta_acc: Number, queries: int) -> Decimal:
    """Return Theorem 3.9's noise, ``sqrt(2 n ln(1/delta_acc))/eps_acc``, per unit sensitivity.

    Rounded up. It is not that of (3.4): it is smaller by ``sqrt(2 ln(1.25/delta_q))``; and at it
    (3.6) gives an account ``eps_acc + eps_acc²/(4 ln(1/delta_acc))``, not eps_acc (claim 22).

    Args:
        epsilon_acc: > 0.
        delta_acc: between 0 and 1.
        queries: n per account, at least 1.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    loss = decimal(epsilon_acc, "epsilon_acc", above=0)
    target = decimal(delta_acc, "delta_acc", above=0, below=1)
    return (-2 * count(queries, "queries") * target.ln()).sqrt() / loss * _UP


@precise
def membership_lower_bound(guarantee: GaussianDp) -> Decimal:
    """Return (3.10), ``z/sqrt(2 pi)`` with ``z = mu/2``, rounded down.

    The mean test's advantage is ``2 Phi(z) - 1``, and the tangent's half stays below it only up
    to z = 2.47304; beyond, the call is refused.

    Raises:
        RefusedError: mu above 4.94608.
    """
    instance(guarantee, GaussianDp, "guarantee")
    half = decimal_of(guarantee.mu) / 2
    if half > _LARGEST_HALF_SHIFT:
        raise RefusedError(
            f"{2 * half:.4f} is too large", where="mu", expected=f"<= {2 * _LARGEST_HALF_SHIFT}"
        )
    return half / (2 * PI).sqrt() / _UP


def exposure(rows: int, selected: int, queries: int) -> Fraction:
    """Return ``1 - (1 - K/N)^m``: how likely one row is ever returned, all rows alike.

    Under add-remove the row's position exists in one world only, so no mechanism that returns
    positions has a smaller delta, at any epsilon (claim 24). It is also the chance of a provider
    who may try m times to get a row into the answer.

    Args:
        rows: N, at least 1.
        selected: K, 1 to N.
        queries: m, 1 to 10^13.

    Returns:
        Rounded down by less than 2^-200.

    Raises:
        InvalidArgumentError: a value out of range.
    """
    share = Fraction(count(selected, "selected", most=count(rows, "rows", most=None)), rows)
    times = count(queries, "queries", most=MAX_QUERIES)
    return Fraction(1) if share == 1 else detection(share, times)
