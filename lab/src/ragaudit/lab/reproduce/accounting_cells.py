"""One cell (epsilon_acc, k) of the collusion paper, priced by our code.

n = 10 000 queries per account, delta_acc = 1e-6, sensitivity 1. The relation does not matter to
these numbers; the paper states its sensitivity for a replaced document.
"""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from ragaudit.encoding.errors import InternalError
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting import collusion, gaussian, renyi, risk
from ragaudit.privacy.guarantees import GaussianDp
from ragaudit.privacy.normal import decimal_of

__all__ = ["DELTA", "GRID", "QUERIES", "PaperCell", "delta_at", "exactly_calibrated"]

QUERIES = 10_000
DELTA = Fraction(1, 10**6)
GRID = range(2, 65)
"""Orders of section 3.7."""

_RELATION = NeighboringRelation.REPLACE


class PaperCell:
    """k accounts with the noise of (3.4) for (epsilon_acc, 1e-6); epsilons as floats."""

    def __init__(self, epsilon_acc: str, accounts: int) -> None:
        self.accounts = accounts
        self.release = collusion.ScoreReleaseClass(Fraction(epsilon_acc), DELTA, QUERIES, _RELATION)
        self.bound = self.release.coalition(accounts, DELTA)
        self.gaussian = self.release.gaussian(accounts)

    def leading(self) -> float:
        """Return the leading term of (5.2) at delta_comp = delta_acc."""
        return float(self.bound.leading)

    def total(self) -> float:
        """Return the bound that Theorem 3.4 proves, at joint delta (k + 1) 1e-6."""
        return float(self.bound.guarantee().epsilon)

    def exact(self, delta: Fraction = DELTA) -> float:
        """Return the least epsilon of k n releases.

        Args:
            delta: of the guarantee; that of the paper by default.
        """
        return float(self.gaussian.at_delta(delta).epsilon)

    def renyi(self) -> float:
        """Return epsilon by equation (3.6) at delta 1e-6."""
        sigma = self.release.sigma(Fraction(1))
        queries = self.accounts * QUERIES
        form = collusion.renyi_closed_form(sigma, Decimal(1), queries, DELTA, _RELATION)
        return float(form.guarantee().epsilon)

    def grid(self, conversion: str) -> float:
        """Return the least epsilon over the Rényi orders 2 to 64.

        Args:
            conversion: "R3" for Mironov's, else that of Canonne, Kamath and Steinke.
        """
        convert = renyi.mironov_epsilon if conversion == "R3" else renyi.canonne_epsilon
        rho = decimal_of(self.gaussian.zero_concentrated().rho)
        return float(min(convert(rho, decimal_of(DELTA), Decimal(order)) for order in GRID))

    def auc(self) -> float:
        """Return the AUC of the best attack, the test by the pooled mean: Phi(mu/sqrt 2)."""
        return float(risk.auc(decimal_of(self.gaussian.mu)))

    def advantage(self) -> float:
        """Return the best attack's advantage, ``2 Phi(mu/2) - 1``."""
        return float(self.gaussian.total_variation().value)


@lru_cache
def exactly_calibrated(epsilon_acc: str, accounts: int = 1) -> GaussianDp:
    """Return mu-GDP of k accounts under the least noise that gives one (epsilon_acc, 1e-6).

    Args:
        epsilon_acc: of one account, in digits.
        accounts: k.

    Raises:
        InternalError: no mu has this epsilon.
    """
    mu = gaussian.largest_mu(Fraction(epsilon_acc), DELTA)
    if mu is None:
        raise InternalError("no mu without a sampler's share", where=f"epsilon {epsilon_acc}")
    return GaussianDp.compose([GaussianDp(Fraction(mu), _RELATION)] * accounts)


def delta_at(guarantee: GaussianDp, epsilon: str) -> float:
    """Return the least delta at an epsilon given in digits.

    Args:
        guarantee: mu-GDP.
        epsilon: >= 0.
    """
    return float(gaussian.delta(decimal_of(guarantee.mu), Decimal(epsilon)))
