"""Reads and writes over Qdrant's interface: each hole of a gateway is found, others are not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import scope_runs
from qdrant_gateway import HOLES, KEYS, NAMES, Gateway
from surface_app import serving

pytestmark = pytest.mark.slow
KINDS = {
    "count-unscoped": "existence",
    "metadata-trusted": "integrity",
    "ids-shared": "integrity",
    "payload-unscoped": "integrity",
    "batch-unscoped": "integrity",
    "delete-unscoped": "integrity",
    "clear-unscoped": "integrity",
    "writes-unchecked": "integrity",
    "deletion-unchecked": "integrity",
    "alias-unchecked": "integrity",
    "total-of-all": "existence",
    "size-of-all": "existence",
    "totals-unchecked": "existence",
}
"""What is found where it is not the content."""
WRITES = {"write-tenant", "write-id", "write-collection", "delete", "whole-collection"}
COUNTS = {"count", "count-elsewhere", "collection-size"}


@pytest.fixture
def gateway() -> Gateway:
    return Gateway(scope_runs.DIMENSION)


@pytest.fixture
def target(gateway: Gateway, tmp_path: Path) -> Iterator[Path]:
    keys = {tenant: key for key, tenant in KEYS.items()}
    with serving(gateway.app()) as port:
        url = f"http://127.0.0.1:{port}"
        yield scope_runs.target(tmp_path, "qdrant", url, keys, collections=NAMES)


def test_nothing_is_found_in_the_sound_one(target: Path) -> None:
    report = scope_runs.scope(target, "--plant", "--writes", "--rounds", "2")
    assert report["findings"] == [] and report["result"] == "CLEAN"
    assert len(report["limits"]) == 1 and report["controlled"] == ["acme", "globex"]
    tried = {one["probe"]: one for one in report["tried"]}
    assert tried.keys() >= WRITES | COUNTS
    assert not any(one["result"] == "SKIPPED" for one in report["tried"])
    # Writes of own rows were taken: what was refused is another's.
    assert tried["write-tenant"]["statuses"]["200"] >= 2


@pytest.mark.parametrize("hole", HOLES)
def test_each_hole_is_found_by_its_probe(hole: str, gateway: Gateway, target: Path) -> None:
    gateway.holes = {hole}
    more = ("--plant", "--writes", "--rounds", "2", "--only", HOLES[hole])
    report = scope_runs.scope(target, *more)
    assert {one["probe"] for one in report["findings"]} == {HOLES[hole]}
    kinds = {one["kind"] for one in report["findings"]}
    other = KINDS.get(hole)
    assert kinds == {other} if other else "content" in kinds
    assert not any(key in str(report) for key in KEYS)
    # What writes have changed is as it was: every attempt met the row in its old state.
    assert not any(one["result"] == "NOT JUDGED" for one in report["tried"])


def test_every_write_has_a_hole() -> None:
    assert set(HOLES.values()) >= WRITES | COUNTS
