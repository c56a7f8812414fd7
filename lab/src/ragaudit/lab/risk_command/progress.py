"""How far a computation is, on standard error; nothing where that is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["advancing", "counted"]


@contextmanager
def counted(function: Callable[[float], float], quiet: bool) -> Iterator[Callable[[float], float]]:
    """Show the number of a function's evaluations while they last.

    Args:
        function: of which the evaluations are counted.
        quiet: show nothing, as on a standard error that is no terminal.

    Returns:
        A context manager that yields the function to call instead.
    """
    from ragaudit.encoding.console import Console  # noqa: PLC0415
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


@contextmanager
def advancing(total: int, what: str, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Show how many of a known number are done.

    Args:
        total: of all.
        what: is done, in a word.
        quiet: show nothing, as on a standard error that is no terminal.

    Returns:
        A context manager that yields the function to call with every further number done.
    """
    from ragaudit.encoding.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    console = Console(stderr=True)
    silent = quiet or not console.is_terminal
    with Progress(console=console, disable=silent, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)
