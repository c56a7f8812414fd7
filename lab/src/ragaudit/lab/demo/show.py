"""What the demonstration prints: verdicts, the price of usefulness, generated answers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragaudit.encoding.console import Console
from ragaudit.lab.demo.generation import GenerationReport, Told
from ragaudit.lab.demo.plan import UtilityRow
from ragaudit.lab.demo.traffic import Complaint, Traffic
from ragaudit.ledger.messages.verdict import WORTHLESS
from ragaudit.privacy.accounting.generation import ChannelEpsilon
from ragaudit.privacy.accounting.table import EpsilonTable
from rich.console import Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

_STYLES = {
    "PASS": "green", "FAIL": "bold red", "REFUSED": "bold red", "EXCEEDED": "yellow",
    "CONDITIONAL": "yellow",
    "NOT ESTABLISHED": "yellow", "NOT RUN": "dim", "NOT APPLICABLE": "dim", "NOT CLAIMED": "yellow",
}  # fmt: skip

_PLAIN_WORDS = (
    "In plain words: at an epsilon that means something this mechanism answers almost at random, "
    "and at a sigma that finds the right passages the promise is nearly empty. The audit does not "
    "make the choice better; it says which of the two a provider sells."
)


def show_accounts(console: Console, traffic: Traffic, window: str) -> None:
    """Print one line per account: what it asked, what its client checked.

    Args:
        console: where.
        traffic: after its questions.
        window: of which window.
    """
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
        kind = "anchored" if traffic.anchored(name, window) else "plain"
        row = (str(outcome.answered), str(outcome.submitted), "; ".join(remarks))
        table.add_row(name, kind, *row)
    console.print(table)


def show_complaints(console: Console, complaints: Sequence[Complaint]) -> None:
    """Print what client libraries refused, each kind once with its number, ten kinds at most."""
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
    """Print the checks with their reasons, and epsilon_audit in all its forms.

    Args:
        predicate: of a verdict (spec 10.3); `epsilon` may be empty. Claims are shown if it has any.

    Raises:
        MalformedError: another table of epsilons than that of spec 7.4.
    """
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
        console.print(_epsilon_table(EpsilonTable.from_json(predicate["epsilon"])))
    result = predicate["result"]
    lines = [f"[{_STYLES.get(result, 'bold')}]{result}[/]"]
    for claim, found in predicate.get("claims", {}).items():
        style = _STYLES.get(found["result"], "bold")
        lines.append(f"{claim}: [{style}]{found['result']}[/]. {escape(found['statement'])}")
    if predicate["worthless"]:
        lines.append(WORTHLESS)
    console.print(Panel(Group(*lines), title=f"window {predicate['window']}", expand=False))


def show_utility(console: Console, rows: Iterable[UtilityRow], chosen: str, top_k: int) -> None:
    """Print recall beside epsilon; for the operator's eyes only.

    Args:
        console: where.
        rows: of several sigmas.
        chosen: sigma of this window, which is marked.
        top_k: K.
    """
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


def _epsilon_table(found: EpsilonTable) -> Table:
    """epsilon_audit in all its forms, the headline first."""
    table = Table(title="epsilon_audit", title_justify="left")
    table.add_column("form")
    table.add_column("epsilon", justify="right")
    table.add_column("of what", overflow="fold")
    accounts, claimed = found.parameters.coalition, found.per_account.epsilon_acc
    notes = {
        "headline": f"{accounts} accounts together: the claim of this audit",
        "per_account": f"one account, at delta_acc; claimed: {claimed}",
        "all_records": "all records of the busiest tenant: needs no bound on coalitions",
    }
    for way in found.ways:
        note = notes.get(way.name) or way.reason or way.label
        queries = "" if way.queries is None else f"{way.queries} queries; "
        style = "bold" if way.name == "headline" else ""
        name = way.name.replace("_", " ")
        table.add_row(name, way.epsilon or "none", escape(queries + note), style=style)
    table.add_section()
    auc = found.risk.to_json()["auc"]
    words = f"at most {found.risk.membership_advantage} (AUC {auc}), whoever attacks"
    table.add_row("membership advantage", "", words)
    return table


def show_where_to_look(console: Console, evidence: Path, windows: Sequence[str]) -> None:
    """Say which files are there, and what is to be seen in them.

    Args:
        console: where.
        evidence: folder with one folder for each window.
        windows: their names.
    """
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


def show_generation(console: Console, report: GenerationReport) -> None:
    """Print answers, budgets, verdict, and what the channel's epsilon means."""
    together = [each for each in report.told if each.together]
    console.print(_answers("one question, asked by every account", together))
    console.print(_answers("other questions", [each for each in report.told if not each.together]))
    console.print(_budgets(report.uses))
    console.print(
        f"{report.submitted} of {len(report.told)} receipts of these answers were given to the "
        f"verifier, by their accounts; the audit says of them: {escape(report.found)}."
    )
    show_verdict(console, report.verdict)
    if report.verdict.get("generation"):
        costs = ChannelEpsilon.from_json(report.verdict["generation"])
        console.print(
            f"All {len(report.told)} generated answers together: epsilon {costs.replace_one_null} "
            f"for a document changed to or from a null row, {costs.replace_one} for one that is "
            "replaced, pure, and the same for any number of accounts: a document answers "
            f"{costs.uses} questions, whoever asks. Later ones are answered without it."
        )
    console.print(f"the evidence: {report.evidence}", soft_wrap=True, highlight=False)
    console.print("re-check the verdict offline, from the bundle alone:")
    console.print(f"  {report.recheck}", soft_wrap=True, highlight=False)
    console.print(f"{report.seconds:.0f} s")


def _answers(title: str, told: Sequence[Told]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in ("account", "question", "patients", "answer", "right", "private tokens"):
        numeric = heading in ("patients", "private tokens")
        table.add_column(heading, justify="right" if numeric else "left")
    for each in told:
        right = "[green]yes[/]" if each.right else "no"
        row = (each.account, escape(each.question.text), str(each.question.support))
        table.add_row(*row, escape(each.text) or "-", right, str(each.private))
    return table


def _budgets(uses: dict[int, int]) -> Table:
    table = Table(
        title="documents by the number of questions that they paid for (for the operator's eyes)",
        title_justify="left",
    )
    table.add_column("questions paid for", justify="right")
    table.add_column("documents", justify="right")
    for times, documents in sorted(uses.items()):
        table.add_row(str(times), str(documents))
    return table
