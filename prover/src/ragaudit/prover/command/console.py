"""What the commands have in common: options and output."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import UnavailableError
from ragaudit.encoding.printable import one_line
from ragaudit.prover.settings import SETTINGS_VARIABLE
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SettingsOption = Annotated[
    Path, typer.Option(envvar=SETTINGS_VARIABLE, help="The YAML file that `init` wrote.")
]


class ServiceUnreachable(UnavailableError):
    """The running prover service does not answer."""


def emit(value: Mapping[str, Any], as_json: bool, note: str = "") -> None:
    """Print a result: one JSON object, or a line for each member and the note on standard error.

    Args:
        value: members in the order in which they are shown.
        as_json: whether a program reads it.
        note: for people only.
    """
    if as_json:
        sys.stdout.write(json.dumps(value) + "\n")
        return
    for name, member in value.items():
        text = member if isinstance(member, str) else json.dumps(member)
        # A member may hold the words of others: they draw no line of their own.
        sys.stdout.write(f"{name}: {one_line(text)}\n")
    # Beside standard output, which is the result and nothing else.
    if note:
        Console(stderr=True).print(note, markup=False)


def emit_rows(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print a list: JSON, or a table.

    Args:
        rows: all with the same members, which head the table.
        as_json: whether a program reads it.
    """
    if as_json:
        sys.stdout.write(json.dumps(list(rows)) + "\n")
        return
    if not rows:
        sys.stdout.write("none\n")
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(escape(one_line(str(value))) for value in row.values()))
    Console().print(table)


@contextmanager
def progress_bar(as_json: bool, what: str) -> Iterator[Callable[[str], None]]:
    """Show on standard error that work is going on; yield a function that changes the text.

    Args:
        as_json: no bar then: a program's log has no use for it.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=as_json) as progress:
        task = progress.add_task(what, total=None)
        yield lambda text: progress.update(task, description=escape(text))
