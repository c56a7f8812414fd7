"""How far a computation is, on standard error; nothing where that is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["counted"]


@contextmanager
def counted(function: Callable[[float], float], quiet: bool) -> Iterator[Callable[[float], float]]:
    """Show the number of a function's evaluations while they last.

    Args:
        function: of which the evaluations are counted.
        quiet: show nothing, as on a standard error that is no terminal.

    Returns:
        A context manager that yields the function to call instead.
    """
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (
        SpinnerColumn(),
        TextColumn("inverting: evaluation {task.completed}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    silent = quiet or not console.is_terminal
    with Progress(*columns, console=console, disable=silent, transient=True) as progress:
        task = progress.add_task("inverting", total=None)

        def watched(value: float) -> float:
            found = function(value)
            progress.advance(task)
            return found

        yield watched
