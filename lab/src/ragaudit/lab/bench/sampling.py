"""Letting Linux perf sample one measurement and nothing else of the process.

perf is started disabled with a pair of named pipes (perf-record(1), --control); around the runs of
the measurement that is wanted, this process tells it to begin and to stop.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["sampled"]

WANTED = "RAGAUDIT_BENCH_SAMPLED"
"""Environment: the measurement's name."""

PIPES = "RAGAUDIT_BENCH_PERF"
"""Environment: the folder of the pipes `control` and `acknowledged`."""


@contextmanager
def sampled(name: str) -> Iterator[None]:
    """Sample what is done inside, if this measurement is the one that is wanted.

    Args:
        name: of the measurement; compared with the environment variable `WANTED`.
    """
    pipes = os.environ.get(PIPES)
    if pipes is None or os.environ.get(WANTED) != name:
        yield
        return
    _tell(Path(pipes), "enable")
    try:
        yield
    finally:
        _tell(Path(pipes), "disable")


def _tell(pipes: Path, command: str) -> None:
    with (pipes / "control").open("w") as control:
        control.write(f"{command}\n")
    with (pipes / "acknowledged").open() as acknowledged:
        # perf has begun, or stopped, only when it answers; else runs next to this one are sampled.
        acknowledged.readline()
