"""`ragaudit reproduce`: one command per paper, each in a module of its own."""

import typer
from ragaudit.cli.reproduce import accounting

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Recompute the papers' tables and figures: paper, corrected, ours, and why they differ.",
)
app.command("accounting", epilog=accounting.EXAMPLE)(accounting.command)


@app.callback()
def _group() -> None:
    """Keep `reproduce` a group while it has one command."""
