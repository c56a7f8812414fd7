"""Privacy accounting: from the noise to epsilon, and back.

    event = NoisyScores.of_policy(sigma, relation, group_size, queries)
    epsilon(event, delta)            headline epsilon, or NoFiniteBound
    gives(event, epsilon, delta)     the policy's promise to an account, checked
    calibrate(...)                   least sigma for a guarantee
    sample_size(...)                 records to check per stratum

The whole table of a verdict (docs/spec/07-coalition.md §7.4) is `accounting.report.epsilon_report`,
its type `accounting.table.EpsilonTable`. Derivations: docs/notes/accounting.md.
"""

from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.privacy.accounting.calibration import calibrate, largest_mu
from ragaudit.privacy.accounting.events import GAMMA, NoisyScores
from ragaudit.privacy.accounting.gaussian import NoFiniteBound, delta, epsilon, gives, least_epsilon
from ragaudit.privacy.sample import (
    bad_records,
    detection,
    miss_probability,
    sample_size,
    sample_size_unbounded,
)

__all__ = [
    "GAMMA",
    "NeighboringRelation",
    "NoFiniteBound",
    "NoisyScores",
    "bad_records",
    "calibrate",
    "delta",
    "detection",
    "epsilon",
    "gives",
    "largest_mu",
    "least_epsilon",
    "miss_probability",
    "sample_size",
    "sample_size_unbounded",
]
