"""What `ragaudit demo --words` prints."""

from collections.abc import Sequence

from ragaudit.encoding.console import Console
from ragaudit.lab.demo.show import show_verdict
from ragaudit.lab.demo.words import Told, WordsReport
from ragaudit.privacy.accounting.generation import ChannelEpsilon
from rich.markup import escape
from rich.table import Table

__all__ = ["show_words"]


def show_words(console: Console, report: WordsReport) -> None:
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
