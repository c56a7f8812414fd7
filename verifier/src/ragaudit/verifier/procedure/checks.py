"""The numbered list of checks (docs/spec/09-audit.md). To disable one, leave it out of the list."""

from typing import Final

from ragaudit.verifier.procedure.dispute_checks import check_disputes
from ragaudit.verifier.procedure.framework import Check
from ragaudit.verifier.procedure.log_checks import (
    check_counters,
    check_log,
    check_registrations,
    check_split_view,
)
from ragaudit.verifier.procedure.opening_checks import (
    check_accounting,
    check_commitments,
    check_index_proof,
    check_policy,
)
from ragaudit.verifier.procedure.privacy_checks import check_coalition, check_epsilon
from ragaudit.verifier.procedure.record_checks import (
    check_containment,
    check_nonces,
    check_schedule,
)
from ragaudit.verifier.procedure.sample_checks import (
    check_embedding,
    check_sampling,
    check_seed,
    check_selection,
)
from ragaudit.verifier.procedure.statement_checks import (
    check_promises,
    check_receipts,
    check_refusals,
)

CHECKS: Final[tuple[Check, ...]] = (
    Check(1, "policy", "The policy, and its countersignature in time", check_policy),
    Check(2, "accounting", "The noise gives the promised epsilon", check_accounting),
    Check(3, "commitments", "What was committed before the window", check_commitments),
    Check(4, "index-proof", "Every index row is short enough", check_index_proof),
    Check(5, "log", "The log is complete and final", check_log),
    Check(6, "split-view", "Everyone saw the same log", check_split_view),
    Check(7, "registrations", "Accounts and their slots", check_registrations),
    Check(8, "counters", "Every query counted, none beyond the limit", check_counters),
    Check(9, "schedule", "Time, order and activation", check_schedule),
    Check(10, "containment", "Each account stays in its tenant's index", check_containment),
    Check(11, "nonces", "The client's share of the randomness", check_nonces),
    Check(12, "promises", "Promises kept", check_promises),
    Check(13, "receipts", "Receipts agree with the log", check_receipts),
    Check(14, "refusals", "Refusals agree with the log", check_refusals),
    Check(15, "disputes", "Disputes by accounts", check_disputes),
    Check(16, "sampling", "The sample was fair and answered", check_sampling),
    Check(17, "seed", "Noise keys were fixed in advance", check_seed),
    Check(18, "embedding", "The query vector is what was asked", check_embedding),
    Check(19, "selection", "Noise first, then selection", check_selection),
    Check(20, "coalition", "Accounts that act together", check_coalition),
    Check(21, "epsilon", "What the guarantee is worth", check_epsilon),
)

OPENING_CHECKS: Final[tuple[Check, ...]] = CHECKS[:4]
"""What is checked before the countersignature; a failure is the verdict REFUSED."""
