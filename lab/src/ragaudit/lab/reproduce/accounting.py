"""`ragaudit reproduce accounting`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.commands import ExitCode
from ragaudit.lab.reproduce.comparison import as_csv, as_json, as_text, write_files

__all__ = ["EXAMPLE", "command"]

EXAMPLE = """Example: ragaudit reproduce accounting --output results

Exit status: 0 every value of ours meets its reference, 1 some value does not, 3 the results could
not be written."""

EXIT_DISAGREES = ExitCode.FALSE


def command(
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
    from ragaudit.lab.reproduce.accounting_tables import tables  # noqa: PLC0415 - loads scipy

    found = tables()
    document = json.dumps(as_json(found), indent=1, ensure_ascii=False) + "\n"
    if output is not None:
        from ragaudit.lab.reproduce.accounting_figures import figures  # noqa: PLC0415

        files = {"accounting.json": document.encode()}
        for table in found:
            files[f"{table.name}.txt"] = as_text(table).encode()
            files[f"{table.name}.csv"] = as_csv(table).encode()
        write_files(output, {**files, **figures()})
    typer.echo(document if as_json_text else "\n\n".join(map(as_text, found)), nl=False)
    raise typer.Exit(EXIT_DISAGREES if any(table.disagreements for table in found) else 0)
