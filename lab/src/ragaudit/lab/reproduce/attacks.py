"""`ragaudit reproduce attacks`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from ragaudit.encoding.commands import ExitCode
from ragaudit.encoding.errors import RagauditError
from ragaudit.lab.reproduce.comparison import write_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragaudit.lab.reproduce.attacks_results import Result, Run

__all__ = ["EXAMPLE", "Figure", "command"]

EXAMPLE = """Examples:

  ragaudit reproduce attacks --output results

  ragaudit reproduce attacks --figure 2a --quick

Exit status: 0 every value of ours meets its reference, 1 some value does not, 2 something that is
needed is missing, 3 the results could not be written, 5 every value meets its reference and some
figure could not be computed. A figure that could not be computed says why, beside the others; with
--output each is written when it is done. A gate that fails is a result, not an error.
"""

EXIT_DISAGREES = ExitCode.FALSE


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
    from ragaudit.lab.reproduce.attacks_embedder import figure_3  # noqa: PLC0415
    from ragaudit.lab.reproduce.attacks_evasion import evasion  # noqa: PLC0415
    from ragaudit.lab.reproduce.attacks_http import figure_2b_http  # noqa: PLC0415
    from ragaudit.lab.reproduce.attacks_scalar import figure_2a  # noqa: PLC0415
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


def command(
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
        # A missing library is told before the work, not after.
        from ragaudit.cli.figures import axes  # noqa: PLC0415

        with axes("", "", ""):
            pass
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
