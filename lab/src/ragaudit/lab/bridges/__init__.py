"""To and from other libraries: dp-accounting, OpenDP and riskcal.

    dp_event(event)                                      an event for dp-accounting's accountants
    loss_distribution(event)                             its composed privacy loss distribution
    profile_of(distribution, relation)                   a bound's guarantee from any distribution
    approximate_of(distribution, delta, relation)

    opendp_profile(guarantee)                            OpenDP's curve, delta by epsilon
    opendp_measurement(guarantee, release)               a measurement with our privacy map
    opendp_guarantee(measurement, relation, distance)    a guarantee from a measurement's map

    attack_rates(event)                                  riskcal's attack rates of an event
    risk_evaluator(relation, group_size, queries)        our mechanism, for riskcal's calibration

dp-accounting comes with this package. OpenDP and riskcal come with its extra `bridges`; without
it their functions say so. What goes through a bridge is binary arithmetic and no certificate.
"""

from ragaudit.lab.bridges.loss_distributions import (
    approximate_of,
    dp_event,
    loss_distribution,
    profile_of,
)
from ragaudit.lab.bridges.opendp_maps import (
    opendp_guarantee,
    opendp_measurement,
    opendp_profile,
)
from ragaudit.lab.bridges.riskcal_rates import AttackRates, attack_rates, risk_evaluator

__all__ = [
    "AttackRates",
    "approximate_of",
    "attack_rates",
    "dp_event",
    "loss_distribution",
    "opendp_guarantee",
    "opendp_measurement",
    "opendp_profile",
    "profile_of",
    "risk_evaluator",
]
