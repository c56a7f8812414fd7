"""`ragaudit reproduce`: the papers' tables and figures, recomputed and corrected."""

import ragaudit.privacy  # noqa: F401 - every command needs it; said at once if it is missing
import typer
from ragaudit.lab.reproduce import accounting, attacks, generation, rad

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Recompute the papers' tables and figures: paper, corrected, ours, and why they differ.",
)
app.command("accounting", epilog=accounting.EXAMPLE)(accounting.command)
app.command("attacks", epilog=attacks.EXAMPLE)(attacks.command)
app.command("generation", epilog=generation.EXAMPLE)(generation.command)
app.command("rad", epilog=rad.EXAMPLE)(rad.command)
