"""Coalition estimate: the Hamming threshold of a policy and the estimator.

    threshold = hamming_threshold("0.8", 128)
    estimate([Record(pseudonym, time_ms, sketch), ...], tau=tau_ms, threshold=threshold).k_hat

Specification: docs/spec/07-coalition.md.
"""

from ragaudit.privacy.coalition.estimator import Estimate, Record, estimate
from ragaudit.privacy.coalition.threshold import hamming_threshold

__all__ = ["Estimate", "Record", "estimate", "hamming_threshold"]
