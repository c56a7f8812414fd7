"""The words of the report. What is not covered is said here as plainly as what is."""

from typing import Final

from ragaudit.verifier.procedure import CHECKS

CHECK_TITLES: Final = {check.id: check.title for check in CHECKS}

TONES: Final = {
    "PASS": "good",
    "FAIL": "bad",
    "REFUSED": "bad",
    "EXCEEDED": "warn",
    "NOT ESTABLISHED": "warn",
    "NOT RUN": "neutral",
}

MEANINGS: Final = {
    "PASS": (
        "Every mandatory check passed. For the records that were checked, the provider committed "
        "to its index and its randomness before the window, added the noise that this randomness "
        "gives, and only then selected. The table below says what each check looked at; the "
        "sections after it say how many records were checked, and what the result does not cover."
    ),
    "FAIL": (
        "At least one mandatory check failed. The reason stands beside it, with the evidence that "
        "shows it. No guarantee follows from this window."
    ),
    "EXCEEDED": (
        "Nothing false was found, but more accounts look as if they act together than the policy "
        "plans for. The policy's epsilon does not hold for that many; the value below is restated "
        "for the number that was estimated. Many accounts asking the same things can be innocent."
    ),
    "REFUSED": (
        "The verifier refused to countersign the opening of this window. Nothing that the provider "
        "does in it is audited."
    ),
}

NOT_ESTABLISHED: Final = "This result does not speak of the following:"

WORTHLESS: Final = (
    "WORTHLESS: the provider's randomness in this window was derived from a published seed, for an "
    "experiment. Anyone can predict the noise. This verdict proves nothing about privacy."
)

SAMPLING: Final = {
    "A": "Every record was checked.",
    "B": (
        "A sample of the records was checked. The probabilities below are a compliance rate: how "
        "likely a sample of this size is to miss every bad record, if the stated share of a "
        "stratum's records were bad. They are not an (epsilon, delta) statement about records that "
        "were not sampled: one record without noise can expose a document completely, and a sample "
        "can miss it."
    ),
}
NO_SAMPLING: Final = "No records were sampled."

PLAIN_ACCOUNTS: Final = (
    "Anchored accounts contributed a secret of their own to each query's noise, and hold the "
    "provider's promise of everything else from before it was revealed: for them the provider had "
    "nothing left to choose. For plain accounts it could still refuse, delay past an activation "
    "instant, log queries of its own in their name, or serve them under another pseudonym that it "
    "had registered before."
)

ELSEWHERE: Final = frozenset({"assumptions", "not_covered", "finite"})
"""Members of the epsilon table that the report shows in other places."""

CASES: Final = {"uniform_priors": "candidates"}
"""Lists of objects, and the member that names each."""

# Member of epsilon, coalition or counts -> label, explanation; in the order of the report.
LABELS: Final[dict[str, tuple[str, str]]] = {
    "headline": ("Guarantee of this window", "for the largest coalition that is planned for"),
    "epsilon": ("epsilon", "smaller is more private; the odds of any guess grow by e^epsilon"),
    "delta_policy": ("delta", ""),
    "queries": ("queries together", ""),
    "mu": ("mu", "of Gaussian differential privacy"),
    "per_account": ("One account alone", "what the policy promises to each account"),
    "epsilon_acc": ("epsilon promised", ""),
    "delta_acc": ("delta promised", ""),
    "satisfied": ("the noise gives it", ""),
    "all_records": ("All records of the largest tenant", "needs no limit on coalitions"),
    "realised": ("Counts of this window", "what was asked in fact; not a guarantee"),
    "risk": ("In terms of risk", "limits for the best attacker there can be"),
    "membership_advantage": (
        "membership advantage",
        "true minus false positive rate when telling whether a row is there",
    ),
    "auc": ("area under the ROC curve", "0.5 is guessing, 1 is certainty"),
    "uniform_priors": ("guessing a row among candidates", "advantage over the prior alone"),
    "candidates": ("candidates", ""),
    "attribute": ("attribute advantage", ""),
    "reconstruction": ("reconstruction advantage", ""),
    "renyi": ("Second accountant: Rényi", "another valid guarantee, usually weaker"),
    "rho": ("rho", "of zero-concentrated differential privacy"),
    "order_floor": ("order", ""),
    "loss_distribution": ("Cross-check: privacy loss distribution", "floating point"),
    "agrees": ("agrees", ""),
    "gaussian_limit": ("Continuous Gaussian", "for comparison"),
    "closed_form": ("Closed form of the source paper", "loose, and valid for its noise only"),
    "in_class": ("the noise is in its class", ""),
    "least_sigma_units": ("least noise of its class", "score units"),
    "leading": ("leading term", ""),
    "residual": ("residual", "which the paper leaves in O-notation"),
    "total": ("total", ""),
    "parameters": ("Computed from", ""),
    "sigma": ("sigma", "standard deviation of the noise on a cosine score"),
    "sigma_units": ("sigma in score units", "one cosine is 16,129 units"),
    "relation": ("neighbouring relation", "which two indexes must look alike"),
    "group_size": ("rows per document", "the unit of protection"),
    "squared_sensitivity_units": ("squared sensitivity", "score units"),
    "queries_per_account": ("queries per account", ""),
    "coalition": ("accounts together", ""),
    "gamma": ("distance of the sampler", "from the exact noise, per value"),
    "order": ("order", ""),
    "label": ("note", ""),
    "reason": ("reason", ""),
    "claimed": ("Largest coalition, as the provider claims", "accounts"),
    "estimated": ("Largest coalition, as recomputed", "accounts"),
    "max": ("Largest coalition that the policy plans for", "accounts"),
    "records": ("Records", "queries in the log"),
    "records_anchored": ("of anchored accounts", ""),
    "records_plain": ("of plain accounts", ""),
    "accounts": ("Accounts", "registrations in the log"),
    "anchored": ("anchored", "with a secret of their own in each query's noise"),
    "plain": ("plain", "without one"),
    "unowned_registrations": (
        "Registrations that no owner countersigned",
        "to which tenant these accounts belong is the provider's word",
    ),
    "receipts": ("Receipts submitted", "with a valid signature of the provider"),
    "disputes": ("Disputes", "their records were kept out of the sample"),
}

_PLACES: Final = {name: place for place, name in enumerate(LABELS)}


def place(name: str) -> tuple[int, str]:
    """Where a member stands among its siblings: known ones in the order above."""
    return (_PLACES.get(name, len(_PLACES)), name)
