"""The generation channel of two provers on one PostgreSQL: rows are charged as by one."""

import asyncio
from collections.abc import Callable
from functools import partial

import numpy as np
import postgresql_server
import pytest
from generation_channel import open_channel
from ragaudit.ledger.messages.entries import Charge, Generated
from ragaudit.ledger.messages.receipts import GeneratedFile, GenerationRequest
from ragaudit.prover.window.charges import charged_rows
from ragaudit.prover.window.records import entries
from scenario import ProverScenario
from several_provers import at_once, take

pytestmark = pytest.mark.slow


@pytest.fixture
def first(
    postgresql: postgresql_server.Server,
    monkeypatch: pytest.MonkeyPatch,
    make_channel: Callable[..., ProverScenario],
) -> ProverScenario:
    monkeypatch.setenv("RAGAUDIT_PROVER__STORE__URL", postgresql.create("prover"))
    scenarios: list[ProverScenario] = []

    async def pause(seconds: float) -> None:
        scenarios[0].clock.now += round(1000 * seconds)

    scenarios.append(make_channel(pause))
    take(scenarios[0])
    return scenarios[0]


def generate(scenario: ProverScenario, question: str) -> GeneratedFile:
    request = GenerationRequest(question)
    return asyncio.run(scenario.service.generating.generate(scenario.account("ada"), request))


def test_charges_of_two_provers_are_those_of_one(
    first: ProverScenario, join: Callable[..., ProverScenario]
) -> None:
    """Neither overlooks what the other charged, and one question is charged once."""
    open_channel(first, uses=2)
    both = (first, join())
    # The same question to both at once: one charge, one answer.
    found = at_once([partial(generate, both[n % 2], f"question {n // 2} ?") for n in range(6)])
    assert all(isinstance(each, GeneratedFile) for each in found), found
    assert found[::2] == found[1::2]
    with first.service.store.read() as connection:
        logged = list(entries(connection, "w1"))
        rows = [each for _, each in charged_rows(connection, "w1", "one", 0)]
    charges = [Charge.parse(each.body) for each in logged if each.kind == Charge.KIND]
    assert [each.number for each in charges] == [each.counter for each in charges] == [0, 1, 2]
    assert sum(each.kind == Generated.KIND for each in logged) == 3
    assert np.bincount(np.concatenate(rows)).max() == 2
    first.service.open_windows.get("w1").log.entries.audit()
