"""`ragaudit reproduce`: the papers' tables and figures, recomputed and corrected."""

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import ragaudit.privacy  # noqa: F401 - every command needs it; said at once if it is missing
import typer
from ragaudit.cli.figures import check_installed
from ragaudit.encoding.commands import ExitCode
from ragaudit.encoding.errors import RagauditError
from ragaudit.lab.reproduce import rad
from ragaudit.lab.reproduce.comparison import as_csv, as_json, as_text, write_files
from ragaudit.lab.risk_command.show import advancing

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragaudit.lab.reproduce.attacks_results import Result, Run

app = typer.Typer(
    no_args_is_help=True,
    help="Recompute the papers' tables and figures: paper, corrected, ours, and why they differ.",
)
app.command("rad", epilog=rad.EXAMPLE)(rad.command)

ACCOUNTING = """Example: ragaudit reproduce accounting --output results

Exit code: 0 every value of ours meets its reference, 1 some value does not, 3 the results could
not be written."""

ATTACKS = """Examples:

  ragaudit reproduce attacks --output results

  ragaudit reproduce attacks --figure 2a --quick

Exit code: 0 every value of ours meets its reference, 1 some value does not, 2 something that is
needed is missing, 3 the results could not be written, 5 every value meets its reference and some
figure could not be computed. A figure that could not be computed says why, beside the others; with
--output each is written when it is done. A gate that fails is a result, not an error.
"""

GENERATION = """Examples:

  ragaudit reproduce generation --output results

  ragaudit reproduce generation --quick --json

Exit code: 0 the streams were run, 2 a library is missing, 3 the results could not be written."""

EXIT_DISAGREES = ExitCode.FALSE

WORLDS = 400
"""Simulated with the record, and as many without, for each coalition."""


@app.command("accounting", epilog=ACCOUNTING)
def accounting(
    output: Annotated[
        Path | None, typer.Option(help="Folder for tables (txt, csv, json) and figures.")
    ] = None,
    as_json_text: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """The collusion paper's epsilon tables and predicted AUC, recomputed.

    Columns: what the paper prints (with * what a formula or claim of it gives where it prints no
    digits), the same quantity corrected by an independent recomputation, what this code computes,
    its difference from the paper, and the reason for the difference.
    Figures are written with --output; they need the extra `plots`.
    """
    from ragaudit.lab.reproduce.accounting import figures, tables  # noqa: PLC0415 - loads scipy

    found = tables()
    document = json.dumps(as_json(found), indent=1, ensure_ascii=False) + "\n"
    if output is not None:
        files = {"accounting.json": document.encode()}
        for table in found:
            files[f"{table.name}.txt"] = as_text(table).encode()
            files[f"{table.name}.csv"] = as_csv(table).encode()
        write_files(output, {**files, **figures()})
    typer.echo(document if as_json_text else "\n\n".join(map(as_text, found)), nl=False)
    raise typer.Exit(EXIT_DISAGREES if any(table.disagreements for table in found) else 0)


class Figure(StrEnum):
    """Of the paper, and what it leaves open."""

    TWO_A = "2a"
    TWO_B = "2b"
    TWO_B_HTTP = "2b-http"
    THREE = "3"
    FOUR = "4"
    FIVE = "5"
    SIX = "6"
    SEVEN = "7"
    EVASION = "evasion"


def _experiments() -> "dict[Figure, Callable[[Run], Result]]":
    from ragaudit.lab.reproduce.attacks_adversaries import figure_4  # noqa: PLC0415 - scipy
    from ragaudit.lab.reproduce.attacks_coalition import figure_7  # noqa: PLC0415
    from ragaudit.lab.reproduce.attacks_evasion import evasion  # noqa: PLC0415
    from ragaudit.lab.reproduce.attacks_http import figure_2b_http  # noqa: PLC0415
    from ragaudit.lab.reproduce.attacks_scalar import figure_2a, figure_3  # noqa: PLC0415
    from ragaudit.lab.reproduce.attacks_scale import figure_6  # noqa: PLC0415
    from ragaudit.lab.reproduce.attacks_top_k import figure_2b, figure_5  # noqa: PLC0415

    return {
        Figure.TWO_A: figure_2a,
        Figure.TWO_B: figure_2b,
        Figure.TWO_B_HTTP: figure_2b_http,
        Figure.THREE: figure_3,
        Figure.FOUR: figure_4,
        Figure.FIVE: figure_5,
        Figure.SIX: figure_6,
        Figure.SEVEN: figure_7,
        Figure.EVASION: evasion,
    }


@app.command("attacks", epilog=ATTACKS)
def attacks(
    output: Annotated[
        Path | None, typer.Option(help="Folder for tables (txt, json) and figures.")
    ] = None,
    figure: Annotated[
        list[Figure] | None, typer.Option(help="Only this figure (repeatable).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all simulations.")] = 20260519,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few trials, to see that it runs.")
    ] = False,
    as_json_text: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """The collusion paper's attacks, run again: what it prints, what theory says, what we find.

    Areas under the ROC curve with 95 % intervals, the paper's gates as tests whose errors are
    stated, and why a figure cannot be reproduced where it cannot. Figures are written with
    --output; they need the extra `plots`.
    """
    from ragaudit.encoding.console import Console  # noqa: PLC0415
    from ragaudit.lab.reproduce import attacks_results as results  # noqa: PLC0415 - scipy
    from rich.progress import Progress, TaskID  # noqa: PLC0415

    if output is not None:
        check_installed()
    chosen = list(dict.fromkeys(figure or Figure))
    with Progress(console=Console(stderr=True), disable=as_json_text, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def advance(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.update(tasks[name], completed=done)

        run = results.Run(seed, quick, advance)
        found: list[Result] = []

        def shown() -> tuple[str, str]:
            terms = {"seed": seed, "quick": quick, "figures": chosen}
            return results.document(found, terms), results.text(found)

        try:
            for each in chosen:
                found.append(_result(each, run))
                if output is not None:
                    document, text = shown()
                    files = {"attacks.json": document.encode(), "attacks.txt": text.encode()}
                    write_files(output, files | found[-1].files())
        finally:
            # Whatever ends this, an interrupt too: hours may stand behind what there is.
            progress.stop()
            typer.echo(shown()[0 if as_json_text else 1], nl=False)
    if any(each.table.disagreements for each in found):
        raise typer.Exit(EXIT_DISAGREES)
    raise typer.Exit(ExitCode.INCOMPLETE if any(each.failed for each in found) else ExitCode.DONE)


def _result(figure: Figure, run: "Run") -> "Result":
    """Return a figure, or why it could not be computed: that takes nothing from the others."""
    from ragaudit.lab.reproduce.attacks_results import not_computed  # noqa: PLC0415 - scipy

    try:
        return _experiments()[figure](run)
    except RagauditError as error:
        return not_computed(figure.value, error)


@app.command("generation", epilog=GENERATION)
def generation(
    output: Annotated[
        Path | None, typer.Option(help="Folder for tables (txt, json) and figures.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=2, max=1000, help="Number of corpora, one seed each.")
    ] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first corpus.")] = 20260501,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two small corpora, to see that it runs.")
    ] = False,
    as_json_text: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Private generated answers on invented patient records, at a total epsilon of 1 to 10.

    A stream of 100 questions, some of them about the same disease and some asked again, answered by
    a small real language model that can only copy from its context: closed book, non-private RAG
    and keywords, NAIVE, MURAG, MURAG-ADA and DP-KSA; and an attack on one record's membership by
    coalitions. What the papers report stands beside it, with what can be compared.
    Figures are written with --output; they need the extra `plots`.
    """
    from ragaudit.lab.generation.transformer import Transformer  # noqa: PLC0415 - numpy
    from ragaudit.lab.reproduce import generation as results  # noqa: PLC0415 - scipy

    if output is not None:
        check_installed()
    size = results.Size(seeds)
    worlds = WORLDS
    if quick:
        size = results.Size(2, families=1, questions=8, epsilons=(3, 10))
        worlds = 20
    model = Transformer.load()
    with advancing(size.seeds * size.questions, "questions", as_json_text) as done:
        asked = [
            each
            for number in range(size.seeds)
            for each in results.run(model, seed + number, size, lambda: done(1))
        ]
    with advancing(2 * worlds * len(results.ACCOUNTS), "worlds", as_json_text) as done:
        attack = results.points(model, worlds, seed, lambda: done(1))
    found = results.cells(asked)
    terms = {**asdict(size), "seed": seed, "worlds": worlds}
    document = json.dumps(results.document(found, attack, terms), indent=1) + "\n"
    shown = results.text(found, attack)
    if output is not None:
        files = {"generation.json": document.encode(), "generation.txt": shown.encode()}
        write_files(output, {**files, **results.figures(found, attack)})
    typer.echo(document if as_json_text else shown, nl=False)
