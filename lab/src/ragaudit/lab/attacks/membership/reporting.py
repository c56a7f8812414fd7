"""What is left of a test: figures as JSON, a page, and a statement to be signed."""

import hashlib
import html
from dataclasses import asdict
from typing import Any

from ragaudit.lab.attacks.membership.campaign import Campaign, Plan
from ragaudit.lab.attacks.membership.judging import ClaimTest, Judgement, Verdict
from ragaudit.lab.attacks.membership.scoring import PERMUTATIONS, RESAMPLES
from ragaudit.ledger.messages.items import POLICY
from ragaudit.ledger.messages.signed_results import MembershipResult

_MEANING = {
    Verdict.PASS: "These questions tell members from others less often than the threshold.",
    Verdict.FAIL: "These questions tell which documents are in the corpus.",
    Verdict.INCONCLUSIVE: "The threshold lies within the interval: more documents would decide.",
}
_LIMITS = (
    "PASS is about these questions: another attacker may ask better ones, as often as it likes, "
    "and a service that recognizes a test can answer it otherwise.",
    "FAIL is about what answers: a language model that read the members in its training, and not "
    "the others, looks like a corpus that holds them.",
    "A claim that is not refuted is not proven. At an epsilon of 10 the cap is 0.99995, at a mu of "
    "5 it is 0.9998.",
    "The interval is of documents like these; it does not cover a corpus of another kind.",
    "Nothing of this test enters an epsilon.",
)


def figures(plan: Plan, found: Judgement) -> dict[str, Any]:
    """Return the result as JSON values.

    Args:
        plan: of the test.
        found: its verdict.
    """
    return {
        "verdict": found.verdict,
        "claim": None if found.claim is None else _claimed(found.claim),
        "primary": asdict(found.primary),
        "exact_low": found.exact_low,
        "p_permutation": found.p_permutation,
        "threshold": plan.threshold,
        "false_alarm": found.false_alarm,
        "exploratory": dict(found.exploratory),
        "members": len(plan.members),
        "non_members": len(plan.others),
        "strategies": list(plan.strategies),
        "seed": plan.seed,
        "declined": found.declined,
        "warnings": list(found.warnings),
        "endpoint": plan.template.url,
        "plan": plan.digest,
    }


def _claimed(test: ClaimTest) -> dict[str, Any]:
    return {**test.claim.parameters, "cap": test.claim.cap, "refuted": test.refuted}


def statement(
    plan: Plan, campaign: Campaign, found: Judgement, policy: bytes | None = None
) -> MembershipResult:
    """Return the result as an in-toto statement.

    Args:
        plan: of the test.
        campaign: with its stored exchanges.
        found: its verdict.
        policy: canonical, of the audited window that was asked; None if it was none.
    """
    primary = found.primary
    subjects = {"exchanges.jsonl": campaign.path.read_bytes()}
    if policy is not None:
        subjects[POLICY] = policy
    numbers = {
        "auc": primary.auc, "auc_low": primary.low, "auc_high": primary.high,
        "auc_exact_low": found.exact_low, "p_mann_whitney": primary.p,
        "p_permutation": found.p_permutation, "threshold": plan.threshold,
    }  # fmt: skip
    detail = {name: f"{value:.6f}" for name, value in numbers.items()}
    detail |= {
        "endpoint": plan.template.url,
        "members": str(len(plan.members)),
        "non_members": str(len(plan.others)),
        "strategies": " ".join(plan.strategies),
        "declined": str(found.declined),
    }
    if found.claim is not None:
        parameters = found.claim.claim.parameters
        detail |= {f"claimed_{name}": value for name, value in parameters.items()}
    return MembershipResult(
        {name: hashlib.sha256(content).hexdigest() for name, content in subjects.items()},
        plan.digest,
        str(found.verdict),
        None if found.claim is None else found.claim.refuted,
        detail,
    )


def summary(plan: Plan, found: Judgement) -> list[str]:
    """Return the result in lines for people.

    Args:
        plan: of the test.
        found: its verdict.
    """
    primary = found.primary
    undecided = found.verdict is Verdict.INCONCLUSIVE and found.dumb
    lines = [
        f"{found.verdict}: {found.dumb if undecided else _MEANING[found.verdict]}",
        f"AUC {primary.auc:.3f}, 95 % interval {primary.low:.3f} to {primary.high:.3f} over "
        f"{len(plan.members)} members and {len(plan.others)} non-members; threshold "
        f"{plan.threshold:g}",
        f"exact lower limit {found.exact_low:.3f} (97.5 %); p {found.p_permutation:.4f} by "
        f"{PERMUTATIONS} permutations, {primary.p:.2g} by Mann and Whitney",
        f"answers that say nothing reach the threshold with probability {found.false_alarm:.4f}",
    ]
    if found.claim is not None:
        claim = found.claim.claim
        said = "CLAIM REFUTED" if found.claim.refuted else "claim not refuted"
        lines.append(f"{said}: {claim} allows an AUC of at most {claim.cap:.6f}")
    return [*lines, *found.warnings]


def page(plan: Plan, found: Judgement) -> str:
    """Return the result as one HTML page; no question and no answer is on it.

    Args:
        plan: of the test.
        found: its verdict.
    """

    def cells(*values: str) -> str:
        return "<tr>" + "".join(f"<td>{html.escape(each)}</td>" for each in values) + "</tr>"

    def items(values: "tuple[str, ...] | list[str]") -> str:
        return "".join(f"<li>{html.escape(each)}</li>" for each in values)

    first, *others = summary(plan, found)
    rows = "".join(cells(name, f"{auc:.3f}") for name, auc in found.exploratory)
    about = "".join(
        cells(name, value)
        for name, value in (
            ("endpoint", plan.template.url),
            ("strategies", ", ".join(plan.strategies)),
            ("seed", str(plan.seed)),
            ("bootstrap", f"{RESAMPLES} resamples of documents, by class"),
            ("plan (SHA-256)", plan.digest),
        )
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Membership test: {found.verdict}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{{font:16px/1.5 sans-serif;max-width:45em;margin:2em auto;padding:0 1em}}
td{{padding:.1em 1em .1em 0;overflow-wrap:anywhere}}</style></head><body>
<h1>Membership test: {found.verdict}</h1><p><strong>{html.escape(first)}</strong></p>
<ul>{items(others)}</ul>
<h2>What this does not say</h2><ul>{items(_LIMITS)}</ul>
<h2>How it was made</h2><table>{about}</table>
<h2>Exploratory</h2><p>AUCs of other scores, from the same answers; no verdict rests on them.</p>
<table>{rows}</table></body></html>
"""
