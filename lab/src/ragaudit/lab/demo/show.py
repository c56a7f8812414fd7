"""What the demonstration prints: verdicts, the price of usefulness, words."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragaudit.lab.demo.traffic import Complaint, Traffic
from ragaudit.lab.demo.utility import UtilityRow
from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

__all__ = [
    "show_accounts",
    "show_complaints",
    "show_utility",
    "show_verdict",
    "show_where_to_look",
]

_STYLES = {
    "PASS": "green", "FAIL": "bold red", "REFUSED": "bold red", "EXCEEDED": "yellow",
    "NOT ESTABLISHED": "yellow", "NOT RUN": "dim",
}  # fmt: skip

_PLAIN_WORDS = (
    "In plain words: at an epsilon that means something this mechanism answers almost at random, "
    "and at a sigma that finds the right passages the promise is nearly empty. The audit does not "
    "make the choice better; it says which of the two a provider sells."
)


def show_accounts(console: Console, traffic: Traffic, window: str) -> None:
    """One line per account: what it asked, what its client checked."""
    table = Table(title=f"accounts in {window}", title_justify="left")
    for heading in ("account", "kind", "answers", "receipts submitted", "remarks"):
        numeric = heading in ("answers", "receipts submitted")
        table.add_column(heading, justify="right" if numeric else "left")
    for (name, of), outcome in sorted(traffic.outcomes.items()):
        if of != window:
            continue
        remarks = []
        if outcome.resumed:
            remarks.append("crashed after a promise, came back, got the promised answer")
        if outcome.disputed:
            remarks.append("disputes its last answer")
        kind = "anchored" if traffic.anchored(name) else "plain"
        row = (str(outcome.answered), str(outcome.submitted), "; ".join(remarks))
        table.add_row(name, kind, *row)
    console.print(table)


def show_complaints(console: Console, complaints: Sequence[Complaint]) -> None:
    """What client libraries refused, each kind once with its number."""
    if not complaints:
        return
    kinds: dict[str, list[Complaint]] = {}
    for each in complaints:
        kinds.setdefault(each.error, []).append(each)
    table = Table(title="client libraries complained", title_justify="left", style="red")
    table.add_column("times", justify="right")
    table.add_column("accounts")
    table.add_column("complaint", overflow="fold")
    for error, found in list(kinds.items())[:10]:
        accounts = sorted({each.account for each in found})
        table.add_row(str(len(found)), ", ".join(accounts), escape(error))
    console.print(table)
    if len(kinds) > 10:
        console.print(f"... and {len(kinds) - 10} other complaints")


def show_verdict(console: Console, predicate: Mapping[str, Any]) -> None:
    """The checks with their reasons, and epsilon_audit in all its forms."""
    checks = Table(title=f"verdict on window {predicate['window']}", title_justify="left")
    checks.add_column("no.", justify="right")
    checks.add_column("check")
    checks.add_column("status")
    checks.add_column("reason", overflow="fold")
    for each in predicate["checks"]:
        status = each["status"]
        style = _STYLES.get(status, "")
        shown = f"[{style}]{status}[/]" if style else status
        checks.add_row(str(each["number"]), each["id"], shown, escape(each["reason"]))
    console.print(checks)
    if predicate["epsilon"]:
        console.print(_epsilon_table(predicate["epsilon"]))
    result = predicate["result"]
    lines = [f"[{_STYLES.get(result, 'bold')}]{result}[/]"]
    if predicate["worthless"]:
        lines.append("WORTHLESS: the provider's randomness was derived from a published seed")
    console.print(Panel(Group(*lines), title=f"window {predicate['window']}", expand=False))


def show_utility(console: Console, rows: Iterable[UtilityRow], chosen: str, top_k: int) -> None:
    """Recall beside epsilon; for the operator's eyes only."""
    table = Table(
        title="what the noise costs (for the operator's eyes; in no verdict, in no bundle)",
        title_justify="left",
    )
    for heading in ("sigma", f"recall@{top_k}", "epsilon_acc", "epsilon_audit", ""):
        table.add_column(heading, justify="right")
    for row in rows:
        mark = "<- this window" if row.sigma == chosen else ""
        style = "bold" if mark else ""
        acc, audit = (
            "no finite bound" if each is None else str(each)
            for each in (row.epsilon_acc, row.epsilon_audit)
        )
        table.add_row(row.sigma, f"{100 * row.recall:.1f} %", acc, audit, mark, style=style)
    console.print(table)
    console.print(_PLAIN_WORDS)


def _epsilon_table(forms: Mapping[str, Any]) -> Table:
    """epsilon_audit in all its forms, the headline first."""
    table = Table(title="epsilon_audit", title_justify="left")
    table.add_column("form")
    table.add_column("epsilon", justify="right")
    table.add_column("of what", overflow="fold")
    terms = forms.get("parameters", {})
    claimed = _member(forms, "per_account", "epsilon_acc")
    notes = {  # these first
        "headline": f"{terms.get('coalition')} accounts together: the claim of this audit",
        "per_account": f"one account, at delta_acc; claimed: {claimed}",
        "all_records": "all records of the busiest tenant: needs no bound on coalitions",
    }
    for name in [*notes, *(each for each in forms if each not in notes)]:
        form = forms.get(name)
        if isinstance(form, Mapping) and "epsilon" in form:
            note = notes.get(name) or str(form.get("label", ""))
            queries = f"{form['queries']} queries; " if "queries" in form else ""
            style = "bold" if name == "headline" else ""
            words = escape(queries + note)
            table.add_row(name.replace("_", " "), _text(form["epsilon"]), words, style=style)
    closed = forms.get("closed_form", {})
    note = closed.get("reason") or closed.get("label", "")
    table.add_row("closed form", _text(closed.get("total")), escape(str(note)))
    risk = forms.get("risk", {})
    table.add_section()
    advantage, auc = risk.get("membership_advantage"), risk.get("auc")
    words = f"at most {_text(advantage)} (AUC {_text(auc)}), whoever attacks"
    table.add_row("membership advantage", "", words)
    return table


def _member(forms: Mapping[str, Any], name: str, member: str) -> str:
    form = forms.get(name)
    return _text(form.get(member)) if isinstance(form, Mapping) else "none"


def _text(value: object) -> str:
    return "none" if value is None else str(value)


def show_where_to_look(console: Console, evidence: Path, windows: Sequence[str]) -> None:
    """Say which files are there, and what is to be seen in them."""
    console.print("\nWhat to look at:", style="bold")
    for window in windows:
        console.print(f"  {evidence / window}/", soft_wrap=True, highlight=False)
    console.print(
        "    report.html        for people: the verdict, then what each of its checks saw\n"
        "    verdict.json       the same, signed by the verifier (DSSE, in-toto)\n"
        "    bundle-public.zip  what anyone needs to check it again\n"
        "    bundle.zip         what a regulator needs: with proofs, keys and embeddings of the "
        "sampled records",
        highlight=False,
    )
