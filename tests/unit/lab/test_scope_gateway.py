"""Each hole of a broken gateway before a real Chroma is found by its probe, none in a sound one."""

from collections.abc import Iterator
from pathlib import Path

import chroma_server
import pytest
import scope_runs
from surface_app import serving
from tenant_gateway import HOLES, KEYS, NAMES, Gateway

pytestmark = pytest.mark.slow
KINDS = {
    "entity-tags": "existence",
    "forbidden-is-not-absent": "existence",
    "elsewhere-is-not-absent": "existence",
    "forbidden-takes-longer": "timing",
    "total-of-all": "existence",
    "names-of-all": "collection",
    "metadata-trusted": "integrity",
    "ids-shared": "integrity",
    "writes-unchecked": "integrity",
    "delete-unscoped": "integrity",
    "deletion-unchecked": "integrity",
    "rename-unchecked": "integrity",
    "creation-takes-over": "integrity",
    "count-of-all": "existence",
    "count-unchecked": "existence",
}
"""What is found where it is not the content."""


@pytest.fixture(scope="module")
def chroma() -> Iterator[str]:
    with chroma_server.ChromaServer() as server:
        yield server.url


@pytest.fixture(scope="module")
def gateway(chroma: str) -> Iterator[Gateway]:
    made = Gateway(chroma)
    yield made
    made.close()


@pytest.fixture(scope="module")
def url(gateway: Gateway) -> Iterator[str]:
    with serving(gateway.app()) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def target(gateway: Gateway, url: str, tmp_path: Path) -> Path:
    gateway.holes = ()
    keys = {tenant: key for key, tenant in KEYS.items()}
    return scope_runs.target(tmp_path, "chroma", url, keys, collections=NAMES)


def test_nothing_is_found_in_the_sound_one(target: Path) -> None:
    report = scope_runs.scope(target, "--plant", "--writes", "--rounds", "2")
    assert report["findings"] == [] and report["result"] == "CLEAN"
    assert len(report["limits"]) == 1 and {"write-id", "delete", "whole-collection", "count"} <= {
        one["probe"] for one in report["tried"]
    }
    assert {one["result"] for one in report["tried"]} == {"NOTHING"}
    # Lawful questions were answered with the own canaries, and probes reached the store.
    assert report["controlled"] == ["acme", "globex"]
    assert any(one["statuses"].get("200") for one in report["tried"])


@pytest.mark.parametrize("hole", HOLES)
def test_each_hole_is_found_by_its_probe(hole: str, gateway: Gateway, target: Path) -> None:
    gateway.holes = {hole}
    more = ("--plant", "--writes", "--rounds", "3", "--only", HOLES[hole])
    report = scope_runs.scope(target, *more)
    assert {one["probe"] for one in report["findings"]} == {HOLES[hole]}
    kinds = {one["kind"] for one in report["findings"]}
    other = KINDS.get(hole)
    assert kinds == {other} if other else "content" in kinds
    text = str(report)
    assert not any(key in text for key in KEYS)
    # What writes have changed is as it was: every attempt met the row in its old state.
    assert not any(one["result"] == "NOT JUDGED" for one in report["tried"])


def test_a_bare_chroma_keeps_no_tenants_apart(chroma: str, tmp_path: Path) -> None:
    """Whoever reaches it reads every collection: by name, by id, and whether rows exist."""
    import httpx
    from tenant_gateway import BASE

    for name in ("bare-acme", "bare-globex"):
        httpx.post(f"{chroma}{BASE}", json={"name": name}, trust_env=False).raise_for_status()
    names = {"acme": "bare-acme", "globex": "bare-globex"}
    target = scope_runs.target(
        tmp_path,
        "chroma",
        chroma,
        {"acme": "any key will do", "globex": "any other, too"},
        collections=names,
    )
    report = scope_runs.scope(target, "--plant", "--writes", "--rounds", "2")
    assert {"write-collection", "delete", "whole-collection"} == {
        name for name, kind in scope_runs.found(report) if kind == "integrity"
    }
    assert ("listing", "collection") in scope_runs.found(report)
    assert ("count-elsewhere", "existence") in scope_runs.found(report)
    probes = {name for name, kind in scope_runs.found(report) if kind == "content"}
    assert {"cross-collection", "cache"} <= probes
    assert ("existence-by-id-elsewhere", "existence") in scope_runs.found(report) or (
        "existence-by-id-elsewhere", "id") in scope_runs.found(report)  # fmt: skip
    # Its own collections are apart: no filter leads from one into the other.
    assert not any(name.startswith("filter") or name == "get-all" for name in probes)
