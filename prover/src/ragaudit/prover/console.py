"""What the commands have in common: options, output, errors and exit codes."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from ragaudit.encoding.errors import InternalError, MalformedError, RagauditError
from ragaudit.encoding.problems import problem_name
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.prover.errors import VerifierUnreachable
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

REFUSED, BAD_INPUT, UNREACHABLE = 1, 2, 3

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SettingsOption = Annotated[Path, typer.Option(help="The YAML file that `init` wrote.")]


class ServiceUnreachable(InternalError):
    """The running prover service does not answer."""


@contextmanager
def failing(as_json: bool) -> Iterator[None]:
    """Turn an error into one message and an exit code; never a traceback."""
    try:
        yield
    except RagauditError as error:
        if as_json:
            shown = {"problem": problem_name(type(error)), "detail": str(error)}
            sys.stdout.write(json.dumps(shown) + "\n")
        else:
            Console(stderr=True).print(f"error: {error}", style="red", markup=False)
        raise typer.Exit(exit_code(error)) from None


def exit_code(error: RagauditError) -> int:
    """Return the exit code of an error."""
    if isinstance(error, StoreUnavailable | VerifierUnreachable | ServiceUnreachable):
        return UNREACHABLE
    return BAD_INPUT if isinstance(error, MalformedError) else REFUSED


def emit(value: Mapping[str, Any], as_json: bool, note: str = "") -> None:
    """Print a result: one JSON object, or a line for each member."""
    if as_json:
        sys.stdout.write(json.dumps(value) + "\n")
        return
    for name, each in value.items():
        sys.stdout.write(f"{name}: {each if isinstance(each, str) else json.dumps(each)}\n")
    if note:
        Console(stderr=True).print(note, markup=False)


def emit_rows(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print a list: JSON, or a table."""
    if as_json:
        sys.stdout.write(json.dumps(list(rows)) + "\n")
        return
    if not rows:
        sys.stdout.write("none\n")
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(str(each) for each in row.values()))
    Console().print(table)


@contextmanager
def progress_bar(as_json: bool, what: str) -> Iterator[None]:
    """Show that something is going on, on standard error."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=as_json) as progress:
        progress.add_task(what, total=None)
        yield
