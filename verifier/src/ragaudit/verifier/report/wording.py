"""The words of the report. What a verdict does not cover is said in the verdict, not here."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from ragaudit.encoding.text import ceil_decimal, is_decimal, parse_decimal
from ragaudit.ledger.messages.verdict import CONDITIONAL, Claims
from ragaudit.privacy.guarantees import Strength
from ragaudit.privacy.sample import CHARGES, ROWS
from ragaudit.verifier.procedure import CHECKS

CHECK_TITLES: Final = {check.id: check.title for check in CHECKS}

HISTORY_CHECK: Final = "schedule"
"""The check whose lines, where it passes, say what happened within the window, and when."""

TONES: Final = {
    "PASS": "good",
    "FAIL": "bad",
    "REFUSED": "bad",
    "EXCEEDED": "warn",
    "CONDITIONAL": "warn",
    "NOT ESTABLISHED": "warn",
    "NOT RUN": "neutral",
    "NOT APPLICABLE": "neutral",
    "NOT CLAIMED": "neutral",
}

STRENGTH_TONES: Final = {
    Strength.MEANINGFUL: "good",
    Strength.WEAK: "warn",
    Strength.EMPTY: "hollow",
}
"""Of a PASS: a kept promise that promises nothing is not shown as a good one."""

_GRAVITY: Final = ("FAIL", "EXCEEDED", "NOT ESTABLISHED", "NOT RUN", "PASS", "NOT APPLICABLE")

CONDITION: Final = (
    "Budgets and charges of the generation channel are proven. That its answers are what votes, "
    "noise and charged documents give was not computed again: it is the provider's word, and the "
    "channel's epsilon is conditional on it."
)

MEANINGS: Final = {
    "PASS": (
        "Every mandatory check passed. For the records that were checked, the provider committed "
        "to its index and its randomness before the window, added the noise that this randomness "
        "gives, and only then selected."
    ),
    "FAIL": (
        "At least one mandatory check failed; the reasons stand below, with the evidence that "
        "shows them. No guarantee follows from this window."
    ),
    "EXCEEDED": (
        "Nothing false was found, but more accounts look as if they act together than the policy "
        "plans for. The policy's epsilon does not hold for that many; the value below is restated "
        "for the number that was estimated. Many accounts asking the same things can be innocent."
    ),
    "CONDITIONAL": f"Every mandatory check passed. {CONDITION}",
    "REFUSED": (
        "The verifier refused to countersign the opening of this window; the reasons stand below. "
        "Nothing that the provider does in it is audited, and no guarantee follows."
    ),
}

UNCLAIMED_MEANINGS: Final = {
    "PASS": (
        "Every check of integrity passed. The provider committed to its index and its log before "
        "and during the window; for the records that were checked, the answer is the exact top K "
        "of the committed index of the account's own tenant, for the query and filter asked, but "
        "for rows that its receipt names as withheld. Whether that index holds the documents as "
        "their owner gave them, no check compares."
    ),
    "FAIL": (
        "At least one check of integrity failed; the reasons stand below, with the evidence that "
        "shows them. Nothing follows from this window."
    ),
    "REFUSED": MEANINGS["REFUSED"],
}
"""Of windows that claim no privacy."""

CLAIM_NAMES: Final = ("Integrity", "Privacy")

NOT_ESTABLISHED: Final = "This result does not speak of the following:"

CLAIMED_ONLY: Final = (
    "None of this is established. It is what the policy's own numbers would give if the provider "
    "had kept to them."
)

REFERRED: Final = (
    "The verifier checked that these files are signed, and that they are about this window. What "
    "was tested, and found, is the word of whoever signed: no check reads it, and no number of "
    "this verdict contains it."
)

ALL_CHECKED: Final = "Every record was checked."
STRATA_CHECKED: Final = (
    "Every record of the strata below was checked. They do not hold all records of the log."
)
SAMPLED: Final = (
    "A sample of the records was checked. The probabilities below are a compliance rate: how "
    "likely a sample of this size is to miss every bad record, if the stated share of a "
    "stratum's records were bad."
)
NO_SAMPLING: Final = "No records were sampled."

ANCHORED: Final = (
    "Accounts claimed as anchored contributed a secret to each query's noise, and hold the "
    "provider's promise of everything else from before it was revealed: for those of them that are "
    "not the provider's own, it had nothing left to choose. A provider that registers accounts of "
    "its own holds their secrets and their dispute keys, and nobody outside can tell them apart: "
    "what share of the records is anchored, is claimed."
)

RECHECK: Final = "ragaudit verifier recheck bundle.zip --verdict-key {key}"
TRANSLATE: Final = (
    "ragaudit risk translate --verdict verdict.json --verdict-key {key} --records 10"
    "  # needs ragaudit-lab"
)
SIGNED: Final = (
    "This page is not signed; the verdict it was made from is, with the key below. Compare the key "
    "with the one that the verifier gave you in another way, then have the signature and the "
    "checks done again:"
)

ROW_SAMPLES: Final = (
    "Rows of each index were drawn likewise, and opened to the verifier with their texts. What it "
    "found, check rows says; of the rows that were not drawn this table says how many could be bad "
    "without one of them in the sample."
)

MOST_RESPONSES: Final = 40
RESPONSES: Final = (
    "and {count} responses to the challenge, confidential/responses/*.bin: for length, their "
    "digests stand in verdict.json only"
)

CASES: Final = {
    "windows": "window",
    "uniform_priors": "candidates",
    "tenants": "id",
    "public_columns": "name",
    "most": "pseudonym",
    "documents": "id",
}
"""Lists of objects, and the member that names each."""

SECONDS: Final = frozenset({"start", "end", "sampling_instant", "time"})
"""Members that are Unix seconds."""

WAYS: Final = (
    ("headline", "The largest coalition planned for", "what a PASS guarantees"),
    ("per_account", "One account alone", "what the policy promises to each account"),
    ("all_records", "All records of the largest tenant", "holds for any number of accounts"),
    ("realised", "As many queries as were asked", ""),
    ("renyi", "The same, by Rényi accounting", ""),
    ("loss_distribution", "The same, by another library", ""),
    ("gaussian_limit", "The same, if noise were continuous", ""),
    ("closed_form", "Closed form of the source paper", ""),
)
"""Members of the epsilon table that state an epsilon: in the order in which they explain each
other, from the guarantee to what it is compared with. Where there is no explanation, the table's
own label is one."""

# Member of the predicate's objects -> label, explanation; in the order of the report.
LABELS: Final[dict[str, tuple[str, str]]] = {
    "start": ("Window begins", ""),
    "end": ("Window ends", ""),
    "sampling_instant": ("Sample drawn", "not before this instant"),
    "policy_digest": ("Policy", "SHA-256, as countersigned"),
    "tenants": ("Tenants", "and the rows of their indexes"),
    "rows": ("rows", ""),
    "privacy": ("Noise", "gaussian, or none: then no epsilon is claimed"),
    "norm_bound": ("norm bound B", "of the committed integer vectors"),
    "metric": ("metric of the store", ""),
    "largest_norm": ("norm that is scaled to B", "of inner products"),
    "public_columns": ("Public columns", "in clear in the index, unprotected"),
    "filter_grammar": ("filters of requests", ""),
    "query_kinds": ("kinds of queries", ""),
    "versions": ("later versions of an index", ""),
    "epochs": ("later seed epochs", "after a restore: what was lost before is in no log"),
    "null_rows": ("Null rows", "that the last versions of indexes mark as deleted documents"),
    "top_k_max": ("K_max", "documents that one answer returns at most"),
    "queries_per_account": ("queries per account", "at most"),
    "slots": ("account slots", "accounts that the window can hold"),
    "audit": ("Terms of the sample", ""),
    "mode": ("mode", "A: every record, B: a sample"),
    "beta": ("beta", "share of bad records that the sample is to find"),
    "eta": ("eta", "largest chance to miss them all"),
    "minimum_per_tenant": ("least sample of a tenant", ""),
    "deadline_seconds": ("seconds to answer the challenge", ""),
    "keys": ("Keys", ""),
    "verifier": ("verifier", "signs countersignature, activations, challenge"),
    "verdict": ("verifier's verdict key", "signs the verdict"),
    "cosigner": ("verifier's cosigner", "signs checkpoints of the log"),
    "provider": ("provider", "signs receipts, promises, refusals"),
    "log": ("provider's log", "signs checkpoints"),
    "finite": ("A finite bound exists", ""),
    **{name: (label, note) for name, label, note in WAYS},
    "epsilon": ("epsilon", "smaller is more private; the odds of any guess grow by e^epsilon"),
    "delta_policy": ("delta", ""),
    "queries": ("queries together", ""),
    "mu": ("mu", "of Gaussian differential privacy"),
    "epsilon_acc": ("epsilon promised", ""),
    "delta_acc": ("delta promised", ""),
    "satisfied": ("the noise gives it", ""),
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
    "rho": ("rho", "of zero-concentrated differential privacy"),
    "order_floor": ("order", ""),
    "agrees": ("agrees", ""),
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
    "coalition": ("accounts together", ""),
    "gamma": ("distance of the sampler", "from the exact noise, per value"),
    "order": ("order", ""),
    "label": ("note", ""),
    "reason": ("reason", ""),
    "id": ("Stratum", ""),
    "population": ("Records", ""),
    "sample": ("Checked", ""),
    "bad": ("What such a sample would miss", ""),
    "miss_probability": ("Chance to miss all bad ones", ""),
    "with_replacement": ("1 − (1 − beta)^s", ""),
    "claimed": ("Largest coalition, as the provider claims", "accounts"),
    "estimated": ("Largest coalition, as recomputed", "accounts"),
    "max": ("Largest coalition that the policy plans for", "accounts"),
    "records": ("Records", "queries in the log"),
    "records_anchored": ("of accounts claimed as anchored", ""),
    "records_plain": ("of plain accounts", ""),
    "charges": ("Charge entries", "questions that documents paid for"),
    "charges_anchored": ("charged for accounts claimed as anchored", ""),
    "charges_plain": ("charged for plain accounts", ""),
    "voids": ("Void charges", "documents paid, and no answer was given"),
    "voids_anchored": ("void of accounts claimed as anchored", ""),
    "voids_plain": ("void of plain accounts", ""),
    "accounts_with_voids": ("Accounts with void charges", "check 28 names those with the most"),
    "accounts": ("Accounts", "registrations in the log"),
    "anchored": ("claimed as anchored", "a secret in each of their queries' noise was shown"),
    "plain": ("plain", "without such a secret, or never shown"),
    "anchored_unshown": ("registered with a secret that nobody showed", "counted as plain"),
    "unowned_registrations": ("Registrations that no owner countersigned", ""),
    "receipts": ("Receipts submitted", "with a valid signature of the provider"),
    "disputes": ("Disputes", "about answers that accounts were given; they never move the sample"),
    "disputes_open": ("Disputes that nobody judged", ""),
    "cosigners": ("Further cosigners", "third parties that the policy names"),
    "demand": ("demand", "required: without the quorum the audit fails"),
    "trust": ("who they are", "C2SP tlog-policy"),
    "policy": ("digest of their list", "SHA-256"),
    "quorum": ("quorum", ""),
    "known": ("of so many", "cosigners"),
    "opening": ("Opening checkpoint", "none: no third party's quorum stands behind it"),
    "final": ("Final checkpoint", "none: no third party's quorum stands behind it"),
    "size": ("entries", ""),
    "time": ("since", "by their clocks"),
    "cosigned": ("cosigned by", "and when"),
    "time_stamps": ("Time stamps", "RFC 3161, by authorities that this verifier trusts"),
    "stamps": ("stamps of it", "in time"),
    "beacon": ("Beacon", "its rounds are fixed by the policy, and mixed into noise and sample"),
    "chain": ("chain", "its hash, as drand names it"),
    "delay_seconds": ("seconds after each instant", "at least, until the round is due"),
    "rounds": ("rounds", "of the activations, and last of the sample"),
    "mechanism": ("mechanism", "murag, murag-ada: relevant rows pay for a question; naive: all do"),
    "uses": ("M", "how often a row may pay"),
    "epsilon_question": ("epsilon of one question", "for a row that pays"),
    "replace_one_null": ("epsilon, null-replace", "all answers, any number of accounts"),
    "replace_one": ("epsilon, replace", "all answers, any number of accounts"),
    "draws": ("coins drawn", "by all answers, at most"),
    "private_tokens": ("private tokens of an answer", "at most"),
    "rounding": ("rounding of choices", "adds to epsilon at most"),
    "distance": ("distance of the coins", "from their exact laws, at most"),
    "answers": ("Answers that withheld rows", ""),
    "overlaps": ("Other windows at the same time", "of this provider, countersigned here"),
    "windows": ("windows", ""),
    "together": ("together with those that name a tenant of this one", "both channels"),
    "together_if_renamed": ("together with all of them", "if their tenants are the same"),
    "accounts_concerned": ("Accounts concerned", ""),
    "most": ("Accounts with the most withheld rows", ""),
    "documents": ("Documents of each index", "as the end of the log lists them"),
    "records_in_time": ("Records under the quorum", "within the merge delay"),
}

_PLACES: Final = {name: place for place, name in enumerate(LABELS)}


def meaning(result: str, claims: Claims) -> str:
    """Return what a result means, and what is left open beside it.

    Args:
        result: of a verdict.
        claims: of it.
    """
    if claims.unclaimed:
        return UNCLAIMED_MEANINGS[result]
    hidden = claims.conditional and result != CONDITIONAL
    return f"{MEANINGS[result]} {CONDITION}" if hidden else MEANINGS[result]


def gravity(status: str) -> int:
    """Return where a status stands when the worst comes first.

    Args:
        status: of a check, as it was signed.

    Returns:
        0 for the worst. An unknown status counts as the worst: it must not hide below a PASS.
    """
    return _GRAVITY.index(status) if status in _GRAVITY else 0


def missed(stratum: Mapping[str, Any]) -> str:
    """Return what a sample of a stratum would miss, as "would miss 3 bad answers of 30 once in 10".

    Args:
        stratum: of the member `strata`, as it was signed; of one of another form, the number alone
            is given, called a number of bad records.
    """
    match stratum:
        case {"population": 0}:
            return "nothing: it is empty"
        case {"bad": int(bad), "population": int(population), "miss_probability": str(text)} if (
            is_decimal(text)
        ):
            named, kinds = str(stratum.get("id")), {CHARGES: "charge", ROWS: "row"}
            kind = next((kind for of, kind in kinds.items() if named.startswith(of)), "answer")
            of = f"{bad:,} bad {kind}{'' if bad == 1 else 's'} of {population:,}"
            return f"would miss {of} {_how_often(parse_decimal(text))}"
    return f"{stratum['bad']} bad records"


def _how_often(chance: Fraction) -> str:
    """A chance that was rounded up, once more rounded against the claim."""
    if chance == 0:
        return "never"
    if chance > Fraction(1, 2):
        return f"with a chance of {ceil_decimal(chance, 3)}"
    return f"once in {1 // chance:,}"


def place(name: str) -> tuple[int, str]:
    """Return where a member stands among its siblings.

    Returns:
        A sorting key; unknown members come last, by name.
    """
    return (_PLACES.get(name, len(_PLACES)), name)
