"""The prover's own interface behind a proxy with holes: each is found by the probe that looks for
it, and none without a hole. The window is a real one.

That every probe and oracle has a hole is tested in tests/unit/lab/test_scope_holes.py.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import scope_runs
from forgetful_surfaces import PROVER, Hole, Proxy, Says, cached, forbidden, slow
from leaking_ports import filled
from scenario import ProverScenario
from scope_windows import ACCOUNTS, fill_documents, start
from surface_app import MemoryPort, serving

pytestmark = pytest.mark.slow

Served = tuple[Proxy, Path]


@pytest.fixture
def served(make_scenario: Callable[..., ProverScenario], tmp_path: Path) -> Iterator[Served]:
    scenario = make_scenario()
    fill_documents(scenario, tmp_path)
    start(scenario, ["text"])
    keys = {tenant: scenario.keys[account] for tenant, account in ACCOUNTS.items()}
    port = filled(MemoryPort(), tmp_path / "canaries.jsonl")
    proxy = Proxy(scenario.api.app, port, {key: tenant for tenant, key in keys.items()})
    with ExitStack() as stack:
        number = stack.enter_context(serving(proxy, lifespan="off"))
        url = f"http://127.0.0.1:{number}"
        path = scope_runs.target(
            tmp_path, "prover", url, keys, top_k=8, dimension=None, window="w1"
        )
        yield proxy, path


def kinds_of(served: Served, probe: str, hole: Hole, says: Says) -> set[tuple[str, str]]:
    """What is found; times are measured again on a machine too busy to tell them apart."""
    proxy, path = served
    proxy.hole, proxy.says, proxy.remembered = hole, says, {}
    for _ in range(3 if says is slow else 1):
        rounds = "3" if says is slow else "2"
        report = scope_runs.scope(path, "--rounds", rounds, "--only", probe)
        assert report["controlled"] == ["acme", "globex"]
        if report["findings"]:
            break
    if says is cached:
        assert {one["family"] for one in report["findings"]} == {"cache"}
    return scope_runs.found(report)


def test_each_hole_is_found_by_its_probe_and_nothing_without(served: Served) -> None:
    """One window for all of them: it takes longer to open than to be asked."""
    proxy, path = served
    proxy.hole = None
    sound = scope_runs.scope(path, "--rounds", "2")
    assert (sound["result"], sound["findings"]) == ("CLEAN", [])
    for probe, hole, says in PROVER:
        kinds = kinds_of(served, probe, hole, says)
        assert {name for name, _ in kinds} == {probe}, (probe, kinds)
        betrayed: dict[Says, str] = {forbidden: "existence", slow: "timing"}
        expected = betrayed.get(says, "content")
        assert (probe, expected) in kinds, (probe, kinds)
