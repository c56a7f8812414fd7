"""The source paper's closed forms, printed beside the exact value for comparison.

They speak of its score-release class: n per-query Gaussian mechanisms calibrated by its
equations (3.1) and (3.4). For any other noise they are not bounds, so every result says
whether the policy is inside the class (docs/notes/accounting.md §6).
"""

from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from ragaudit.privacy.normal import decimal_of, precise

__all__ = ["ClosedForm", "class_sigma", "closed_form", "per_query", "well_formed"]


class ClosedForm(NamedTuple):
    """Equation (5.2) with its residual written out.

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
    epsilon_acc: Fraction,
    delta_acc: Fraction,
    queries: int,
    coalition: int,
    delta_comp: Fraction,
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
