"""Writes over OpenAI's shape: each hole of a file store is found, none in a sound one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import scope_runs
from file_store import HOLES, Files
from leaking_ports import filled
from surface_app import KEYS, NAMES, MemoryPort, serving, surface_app

pytestmark = pytest.mark.slow
WRITES = (
    "write-id", "write-tenant", "write-collection", "delete", "whole-store", "whole-file",
)  # fmt: skip
ONLY = tuple(word for name in WRITES for word in ("--only", name))
Served = tuple[Files, MemoryPort, Path]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    keys = {account.tenant: key for key, account in KEYS.items()}
    scope_runs.target(tmp_path, "openai", "http://x", keys, collections=NAMES)
    port = filled(MemoryPort(), tmp_path / "canaries.jsonl")
    files = Files(surface_app(port), port)
    with serving(files) as number:
        url = f"http://127.0.0.1:{number}"
        path = scope_runs.target(tmp_path, "openai", url, keys, collections=NAMES, top_k=20)
        yield files, port, path


def contents(port: MemoryPort) -> dict[str, set[tuple[str, str]]]:
    return {
        tenant: {(row.id, str(sorted(row.metadata.items()))) for row in rows}
        for tenant, rows in port.rows.items()
    }


def test_nothing_is_found_in_the_sound_one(served: Served) -> None:
    _, port, path = served
    before = contents(port)
    report = scope_runs.scope(path, "--writes", "--rounds", "2", *ONLY)
    assert (report["result"], report["findings"]) == ("CLEAN", [])
    assert {one["probe"] for one in report["tried"]} == set(WRITES)
    assert len(report["limits"]) == 1
    assert contents(port) == before
    # The owner's own file was written: what was refused is another's.
    tried = {one["probe"]: one["statuses"] for one in report["tried"]}
    assert tried["write-tenant"] == {"200": 1}


@pytest.mark.parametrize("hole", HOLES)
def test_each_hole_is_found_by_its_write(hole: str, served: Served) -> None:
    files, port, path = served
    files.holes, before = {hole}, contents(port)
    report = scope_runs.scope(path, "--writes", "--rounds", "2", *ONLY)
    # A surface that trusts attributes lets them be another's in more ways than one.
    assert ("integrity", HOLES[hole]) in {(k, p) for p, k in scope_runs.found(report)}
    assert {kind for _, kind in scope_runs.found(report)} == {"integrity"}
    assert not any(one["result"] == "NOT JUDGED" for one in report["tried"])
    assert contents(port) == before


def test_every_write_has_a_hole() -> None:
    assert set(HOLES.values()) == set(WRITES)
