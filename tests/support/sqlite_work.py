"""How much SQLite does, in steps of its virtual machine: the same in every run."""

from collections.abc import Callable

from sqlalchemy import Engine, event

_STEPS = 10  # between two counts


def steps(engine: Engine, work: Callable[[], object]) -> int:
    """Return how many steps the statements of some work take, rounded down.

    Args:
        engine: of SQLite; what other threads do with it meanwhile counts too.
    """
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += _STEPS
        return 0

    def watch(connection: object, *_: object) -> None:
        connection.set_progress_handler(count, _STEPS)  # type: ignore[attr-defined]

    def leave(connection: object, *_: object) -> None:
        connection.set_progress_handler(None, _STEPS)  # type: ignore[attr-defined]

    event.listen(engine, "checkout", watch)
    event.listen(engine, "checkin", leave)
    try:
        work()
    finally:
        event.remove(engine, "checkout", watch)
        event.remove(engine, "checkin", leave)
    return counted
