"""Membership tests as `ragaudit attack membership` runs and shows them."""

import hashlib
import html
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
from ragaudit.embedders.registry import load
from ragaudit.encoding.commands import ExitCode, NotJudged
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.membership import endpoints
from ragaudit.lab.attacks.membership.campaign import Campaign, Plan
from ragaudit.lab.attacks.membership.documents import (
    PERMUTATIONS,
    RESAMPLES,
    Document,
    check_matched,
    choose,
    read,
)
from ragaudit.lab.attacks.membership.endpoints import Template
from ragaudit.lab.attacks.membership.judging import (
    ClaimTest,
    Judgement,
    Verdict,
    check_questions,
)
from ragaudit.lab.risk_command.show import json_text
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


CODES = {
    Verdict.PASS: ExitCode.DONE,
    Verdict.FAIL: ExitCode.FALSE,
    Verdict.INCONCLUSIVE: ExitCode.INCOMPLETE,
}
"""How the command ends."""


def template(endpoint: str, model: str, window: str, top_k: int) -> Template:
    """Return how the endpoint is asked; arguments are the command's options.

    Raises:
        MalformedError: an option that the kind of endpoint needs is missing, or no such file.
    """
    kind, _, url = endpoint.partition(":")
    if kind == "openai":
        if not model:
            raise MalformedError("no model", where="--model", expected="with openai:URL")
        return endpoints.openai(url, model)
    if kind == "ragaudit":
        if not window:
            raise MalformedError("no window", where="--window", expected="with ragaudit:URL")
        return endpoints.ragaudit(url, window, top_k)
    try:
        return Template.parse(Path(endpoint).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedError(
            "neither openai:URL nor ragaudit:URL nor a readable file",
            where=f"--endpoint {endpoint}",
        ) from error


def classes(
    members: Path, non_members: Path | None, pool: Path | None, embedder: str, seed: int
) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """Return the members and the non-members; arguments are the command's options.

    Raises:
        MalformedError: neither non-members nor a pool, both, or files that are not usable.
        RefusedError: the classes differ in more than membership.
    """
    if (non_members is None) == (pool is None):
        raise MalformedError("no non-members", where="--non-members", expected="it, or --pool")
    inside, model = read(members, "--members"), load(embedder)
    if pool is not None:
        known = {each.id for each in inside}
        candidates = [each for each in read(pool, "--pool") if each.id not in known]
        outside = choose(inside, candidates, model)
    else:
        assert non_members is not None  # one of both was given
        outside = read(non_members, "--non-members")
    check_matched(inside, outside, model, seed)
    if not all(each.title for each in (*inside, *outside)):
        # Titles of one class alone would make its questions, and its citations, of another kind.
        inside, outside = ([replace(each, title="") for each in side] for side in (inside, outside))
    return tuple(inside), tuple(outside)


def check(plan: Plan, budget: int) -> None:
    """Check that a test can be judged, and asks no more questions than its budget.

    Raises:
        RefusedError: it asks more.
    """
    questions, _ = plan.cost()
    if questions > budget:
        raise RefusedError(
            f"{questions} questions", where="--budget",
            expected=f"at most {budget}: fewer documents or strategies, or a larger budget",
        )  # fmt: skip
    check_questions(plan)


def agree(plan: Plan, campaign: Campaign, price: float, yes: bool) -> None:
    """Say what a test costs, and return once somebody agreed.

    Args:
        price: of 1,000 sent tokens; 0 if unknown.
        yes: whether nobody is to be asked.

    Raises:
        NotJudged: nobody agreed.
    """
    questions, tokens = plan.cost()
    cost = f", about {price * tokens / 1000:.2f} for them" if price else ""
    typer.echo(
        f"{len(plan.documents)} documents, {questions} questions ({campaign.left} left), about "
        f"{tokens} tokens sent{cost}; answers are charged by the endpoint. Each document is "
        f"asked about {questions // len(plan.documents)} times: a service with budgets for "
        "documents is best asked on a copy of its index with fresh ones.",
        err=True,
    )
    if campaign.left and not yes and not _agreed():
        raise NotJudged("nothing was asked, so nothing is judged", expected="yes, or --yes")


def _agreed() -> bool:
    try:
        return typer.confirm("Ask them?", err=True)
    except typer.Abort as end:
        if isinstance(end.__context__, KeyboardInterrupt):
            raise
        return False  # nobody is there to be asked


def write(
    output: Path, plan: Plan, campaign: Campaign, found: Judgement, signer: PrivateKey | None,
    policy: bytes | None,
) -> None:  # fmt: skip
    """Write a test's result: for people, as JSON and, with a key, signed.

    Args:
        output: a folder.
        signer: of the statement; None for none.
        policy: canonical, of the audited window that was asked; None if it was none.
    """
    (output / "report.html").write_text(page(plan, found), encoding="utf-8")
    (output / "result.json").write_text(json_text(figures(plan, found)) + "\n", encoding="utf-8")
    if signer is not None:
        envelope = statement(plan, campaign, found, policy).issue(signer)
        (output / "result.dsse.json").write_bytes(envelope)
        digest = hashlib.sha256(envelope).hexdigest()
        (output / "result.sha256").write_text(f"{digest}  result.dsse.json\n", encoding="ascii")
