"""Privacy accounting, calibration and coalition estimates of ragaudit: what a study needs first.

    account = NoisyScores.of_policy("9", "replace", 1, 20)       sigma, relation, g, r
    GaussianAccountant().price(Coalition(account, 5), "1e-6")    what five accounts learn
    calibrate("8", "1e-6", 20, "replace", 1)                     the least sigma for a promise

Disclosure risk is :mod:`ragaudit.lab.risk`, planning :mod:`ragaudit.privacy.planning`, the
collusion paper's own equations :mod:`ragaudit.privacy.accounting.collusion`. Numbers may be of any
kind (:mod:`ragaudit.privacy.numbers`).
"""

from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting.accountants import (
    ACCOUNTANTS,
    GaussianAccountant,
    LossDistributionAccountant,
    RenyiAccountant,
    ZeroConcentratedAccountant,
    calibrate_coalition,
    largest_coalition,
    largest_queries,
    largest_rate,
    remaining_queries,
)
from ragaudit.privacy.accounting.events import (
    GAMMA,
    Coalition,
    Composition,
    NoisyScores,
    RealisedCoalition,
    WholeTenant,
)
from ragaudit.privacy.accounting.gaussian import NoFiniteBound, calibrate, epsilon, gives
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.privacy.guarantees import (
    ApproximateDp,
    GaussianDp,
    Strength,
    TotalVariation,
    ZeroConcentratedDp,
    guarantee_sentence,
    membership_sentence,
    strength,
)
from ragaudit.privacy.numbers import Number
from ragaudit.privacy.sample import sample_size

__all__ = [
    "ACCOUNTANTS",
    "GAMMA",
    "ApproximateDp",
    "Coalition",
    "Composition",
    "EpsilonTable",
    "GaussianAccountant",
    "GaussianDp",
    "LossDistributionAccountant",
    "NeighboringRelation",
    "NoFiniteBound",
    "NoisyScores",
    "Number",
    "RealisedCoalition",
    "RenyiAccountant",
    "Strength",
    "TotalVariation",
    "WholeTenant",
    "ZeroConcentratedAccountant",
    "ZeroConcentratedDp",
    "calibrate",
    "calibrate_coalition",
    "epsilon",
    "epsilon_report",
    "gives",
    "guarantee_sentence",
    "largest_coalition",
    "largest_queries",
    "largest_rate",
    "membership_sentence",
    "remaining_queries",
    "sample_size",
    "strength",
]
