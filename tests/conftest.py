"""Make tests/support importable; no property test depends on load, and none on chance in CI."""

import gc
import logging
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "support"))

import postgresql_server
from compiled_sql import share_compiled

# The threads of BLAS turn while they wait: a small product that takes one thread 5 ms takes two
# 100 ms of a processor, and as much from the tests of another worker.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Tests start hundreds of processes: Python keeps what it compiled, whatever the environment says.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("ragaudit", deadline=None)
# Elsewhere every run looks at new examples; a change is judged on the same ones each time.
settings.register_profile("ragaudit-ci", deadline=None, derandomize=True)
settings.load_profile("ragaudit-ci" if os.environ.get("CI") else "ragaudit")

share_compiled()
# Of an app its commands are made once, as in a process of its own; not at each of its calls.
vars(typer.testing)["_get_command"] = cache(vars(typer.testing)["_get_command"])

MEMORY = Path("/dev/shm")
ROOM = 2**30  # bytes, generously: what a test that passed has written is removed


def pytest_configure(config: pytest.Config) -> None:
    """Files of default tests are in memory where it has room: nobody waits for a disk to be sure.

    The slow ones, which kill services and cut their power, have a disk.
    """
    if config.option.markexpr.startswith("not slow") and MEMORY.is_dir():
        found = os.statvfs(MEMORY)
        if found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & os.ST_NOEXEC:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A run of slow tests imports what has any: half a minute of a processor for each worker."""
    slow = config.option.markexpr.startswith(("slow", "nightly"))
    if slow and fnmatch(collection_path.name, "test_*.py") and not may_be_slow(collection_path):
        return True
    return None


@cache
def may_be_slow(module: Path) -> bool:
    """Whether a module of tests names the marks, or what gives them to its tests."""
    return re.search(r"\b(slow|nightly|databases)\b", module.read_text()) is not None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: nobody looks for garbage among millions of objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(mark) for mark in ("slow", "nightly"))


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Of long modules those that may take longest come first: no worker waits at the end for one.

    The others stay in their order; what is not selected is gone by then.
    """
    if hidden := {str(each.path) for each in items if is_slow(each) and not may_be_slow(each.path)}:
        raise pytest.UsageError(f"slow tests that a run of them does not find: {sorted(hidden)}")
    yield
    limits: dict[Path, list[float]] = {}
    for item in filter(is_slow, items):
        limit = item.get_closest_marker("timeout")
        limits.setdefault(item.path, [0]).append(limit.args[0] if limit else 0)
    items.sort(key=lambda each: (max(of := limits.get(each.path, [0])), len(of)), reverse=True)


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A command that serves configures the log of the whole process."""
    handlers, level = list(logging.root.handlers), logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture(params=["sqlite", "postgresql"])
def engine_name(request: pytest.FixtureRequest) -> str:
    """Every test whose database comes from here runs on both; `databases.ON_SQLITE` on one."""
    return str(request.param)


@pytest.fixture
def make_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """A function that makes a database on an engine; its URL. They are gone after the test."""
    made: list[str] = []

    def make(engine: str, prepare: Callable[[str], object] | None = None) -> str:
        if engine == "sqlite":
            return f"sqlite:///{tmp_path}/store.db"
        made.append(request.getfixturevalue("postgresql").fresh(prepare))
        return made[-1]

    yield make
    for url in made:
        request.getfixturevalue("postgresql").drop(url)


@pytest.fixture
def empty_database(engine_name: str, make_database: Callable[..., str]) -> str:
    """The URL of a database without tables, on each engine."""
    return make_database(engine_name)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[postgresql_server.Server]:
    """A PostgreSQL server of this run's own, of the wheel that `make setup` installs."""
    programs = postgresql_server.wheel() or postgresql_server.installed()
    assert programs is not None, "PostgreSQL is missing: make setup brings a wheel with it"
    server = postgresql_server.Server(programs)
    try:
        server.start()
        yield server
    finally:
        server.close()
