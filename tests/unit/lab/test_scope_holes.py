"""Each hole of a proxy before our surfaces is found by the probe that looks for it.

That nothing is found in the surfaces themselves is tested in test_scope_surfaces.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import scope_runs
import tenant_gateway
from forgetful_surfaces import (
    HOLES,
    PROVER,
    Hole,
    Proxy,
    Says,
    cached,
    forbidden,
    names,
    slow,
    tagged,
)
from leaking_ports import filled
from ragaudit.lab.attacks.scope.probes import Tested
from ragaudit.lab.attacks.scope.stores.store import StoreKind
from surface_app import KEYS, NAMES, MemoryPort, serving, surface_app

TENANT_KEYS = {account.tenant: key for key, account in KEYS.items()}
CASES = [(store, *hole) for store, holes in HOLES.items() for hole in holes]


class Scope:
    """A proxy before the surfaces, and the target that names it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        scope_runs.target(folder, "openai", "http://x", {})
        port = filled(MemoryPort(), folder / "canaries.jsonl")
        self.proxy = Proxy(surface_app(port), port)

    def target(self, store: str, number: int) -> Path:
        url = f"http://127.0.0.1:{number}"
        return scope_runs.target(self.folder, store, url, TENANT_KEYS, collections=NAMES)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scope, int]]:
    scope = Scope(tmp_path_factory.mktemp("holes"))
    with serving(scope.proxy) as number:
        yield scope, number


@pytest.mark.slow
@pytest.mark.parametrize(("store", "probe", "hole", "says"), CASES)
def test_each_hole_is_found(
    store: StoreKind, probe: str, hole: Hole, says: Says, served: tuple[Scope, int]
) -> None:
    scope, number = served
    scope.proxy.hole, scope.proxy.says, scope.proxy.remembered = hole, says, {}
    path = scope.target(store, number)
    found = scope_runs.scope(path, "--rounds", "3" if says is slow else "2", "--only", probe)
    kinds = {kind for _, kind in scope_runs.found(found)}
    betrayed: dict[Says, set[str]] = {
        tagged: {"existence"}, forbidden: {"existence"}, names: {"collection"}, slow: {"timing"},
    }  # fmt: skip
    expected = betrayed.get(says)
    assert kinds == expected if expected else "content" in kinds
    assert not any(key in str(found) for key in KEYS)
    if says is cached:
        assert {one["family"] for one in found["findings"]} == {"cache"}


@pytest.mark.parametrize("store", HOLES)
def test_every_probe_has_a_hole(store: StoreKind, tmp_path: Path) -> None:
    asking = scope_runs.adapter(tmp_path, store)
    probes, oracles = asking.probes("acme", "globex"), asking.oracles("acme", "globex")
    tried = {one.name for one in probes} | {one.name for one in oracles}
    assert {probe for probe, _, _ in HOLES[store]} == tried


def test_chroma_has_a_hole_for_whatever_is_tried(tmp_path: Path) -> None:
    """They are tried before a real one, in test_scope_gateway.py."""
    asking = scope_runs.adapter(tmp_path, "chroma")
    asking._ids = dict(NAMES)  # type: ignore[attr-defined]  # `open` would ask the service
    sides = ("acme", "globex")
    tried: list[Tested] = [*asking.probes(*sides), *asking.oracles(*sides)]
    tried += [*asking.writes(*sides), *asking.censuses(*sides)]
    assert set(tenant_gateway.HOLES.values()) == {one.name for one in tried}


def test_the_prover_has_a_hole_for_every_probe(tmp_path: Path) -> None:
    """They are tried before a real window, in tests/e2e/test_scope_prover_holes.py."""
    asking = scope_runs.adapter(tmp_path, "prover")
    asking._window = "/v1/windows/w1"  # type: ignore[attr-defined]  # `open` would ask the service
    tried = {one.name for one in asking.probes("acme", "globex")}
    tried |= {one.name for one in asking.oracles("acme", "globex")}
    assert {probe for probe, _, _ in PROVER} == tried
