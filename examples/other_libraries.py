"""Read guarantees of dp-accounting, OpenDP and riskcal, and hand them ours.

Run it with ``python other_libraries.py``.
"""

from dp_accounting.pld import privacy_loss_distribution
from opendp import prelude
from ragaudit.lab.bridges import (
    attack_rates,
    opendp_guarantee,
    opendp_measurement,
    profile_of,
)
from ragaudit.lab.risk import Scenario, best_bound
from ragaudit.privacy import GaussianDp, NeighboringRelation, NoisyScores

laplace = privacy_loss_distribution.from_laplace_mechanism(2.0)
profile = profile_of(laplace, NeighboringRelation.REPLACE)
bound = best_bound(Scenario.uniform(10), [profile])
print(f"advantage at most {bound.value:.4f}, by {bound.winner.theorem}")


guarantee = GaussianDp.of("0.8", NeighboringRelation.REPLACE)
measurement = opendp_measurement(guarantee, release=len)
print(prelude.c.make_fix_delta(measurement, 1e-6).map(2), "for two documents")
back = opendp_guarantee(measurement, NeighboringRelation.REPLACE)
print(f"advantage at most {best_bound(Scenario.uniform(10), [back]).value:.4f}")

account = NoisyScores.of_policy("30", "replace", 1, 20)
print(f"riskcal: a membership attack gains {attack_rates(account).advantage:.4f}")
