"""Disclosure risk: reconstruction advantage (RAD), its bounds and their inversion.

    threat = ThreatModel.reconstruction(FinitePrior.uniform(10))
    finite_advantage(grr_channel(10, 1.0), threat)      the optimum of a known mechanism
    best_bound(Scenario.of_threat(threat), [guarantee])  the best bound for an unknown one
    largest_mu(0.1, threat.summary)                      calibration

An advantage is P[success | the target is in] - P[success | another draw in its place]: what taking
part adds to what an attacker could guess anyway. Derivations, and what is corrected in the paper:
docs/notes/disclosure-risk.md.
"""

from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.risk.calibration import largest_mu, largest_parameter, least_parameter
from ragaudit.lab.risk.continuous import continuous_advantage
from ragaudit.lab.risk.estimation import (
    AdvantageEstimate,
    Method,
    area_under_curve,
    certify,
    check_claim,
    estimate_from_model,
    false_alarm,
    from_counts,
    from_guesses,
    null_deviation,
)
from ragaudit.lab.risk.general_bounds import (
    BestBound,
    Bound,
    Knowledge,
    Scenario,
    best_bound,
    channel_bounds,
)
from ragaudit.lab.risk.known_mechanisms import LocalMechanism, NoiseMechanism
from ragaudit.lab.risk.mechanisms import (
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    finite_advantage,
    grr_channel,
    oue_channel,
    ss_channel,
)
from ragaudit.lab.risk.one_dimensional import line_advantage
from ragaudit.lab.risk.optimal_attack import OptimalAttack, simulate
from ragaudit.lab.risk.threat import (
    AuxiliaryKnowledge,
    ContinuousPrior,
    FinitePrior,
    SuccessSets,
    ThreatModel,
)
from ragaudit.lab.risk.trade_off import PrivacyProfile
from ragaudit.lab.risk.translation import translate
from ragaudit.lab.risk.validation import AssumptionError
from ragaudit.privacy.accounting.risk import PriorSummary

__all__ = [
    "AdvantageEstimate",
    "AssumptionError",
    "AuxiliaryKnowledge",
    "BestBound",
    "Bound",
    "ContinuousPrior",
    "ExponentialMechanism",
    "FinitePrior",
    "GaussianNoise",
    "Knowledge",
    "LaplaceNoise",
    "LocalMechanism",
    "Method",
    "NeighboringRelation",
    "NoiseMechanism",
    "OptimalAttack",
    "PriorSummary",
    "PrivacyProfile",
    "Scenario",
    "SuccessSets",
    "ThreatModel",
    "area_under_curve",
    "best_bound",
    "certify",
    "channel_bounds",
    "check_claim",
    "continuous_advantage",
    "estimate_from_model",
    "false_alarm",
    "finite_advantage",
    "from_counts",
    "from_guesses",
    "grr_channel",
    "largest_mu",
    "largest_parameter",
    "least_parameter",
    "line_advantage",
    "null_deviation",
    "oue_channel",
    "simulate",
    "ss_channel",
    "translate",
]
