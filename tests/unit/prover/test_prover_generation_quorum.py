"""The client library under a policy of further cosigners: step 11 of a generated answer."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from further_cosigners import CosignedProver
from generation_channel import QUESTION
from generation_clients import Open, clients_of
from ragaudit.client.results import CheckedAnswer
from ragaudit.ledger.messages.receipt_check import StepResult
from scenario import ProverScenario


@pytest.fixture
def cosigned(channel: ProverScenario, tmp_path: Path) -> Iterator[CosignedProver]:
    made = CosignedProver(channel, tmp_path)
    yield made
    made.parties.close()


@pytest.fixture(params=["required", "reported"])
def demand(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(cosigned: CosignedProver, demand: str, tmp_path: Path) -> Iterator[Open]:
    yield from clients_of(cosigned.scenario, tmp_path, cosigners=demand)


def quorum(receipt: CheckedAnswer) -> StepResult:
    last = receipt.checks[-1]
    assert (last.number, last.name) == (11, "cosigners")
    return last


@pytest.mark.parametrize("account", ["ada", "bob"])
def test_an_answer_is_completed_with_the_quorum_behind_both_proofs(
    opened: Open, cosigned: CosignedProver, account: str
) -> None:
    client = opened(account)
    cosigned.parties.take_up(cosigned.scenario.policy().keys.log)
    receipt = client.ask(QUESTION).receipt
    assert quorum(receipt).status == "not done"
    assert "outstanding" in quorum(receipt).detail
    cosigned.round()
    client.complete(receipt)
    assert quorum(receipt).status == "done"
    said = "quorum them reached: cosigned by one, two, three (3 of 3), since 20"
    assert said in quorum(receipt).detail
    assert receipt.completed


def test_without_the_quorum_the_demand_decides_and_nobody_is_accused(
    opened: Open, cosigned: CosignedProver, demand: str
) -> None:
    client = opened("bob")
    cosigned.parties.take_up(cosigned.scenario.policy().keys.log)
    for name in ("two", "three"):
        cosigned.parties.of[name].instead = lambda _request: httpx.Response(503)
    receipt = client.ask(QUESTION).receipt
    cosigned.round()
    cosigned.scenario.clock.now += 60_000  # nobody holds it back any longer
    client.complete(receipt)
    assert quorum(receipt).status == ("not done" if demand == "required" else "done")
    assert "quorum them NOT reached: cosigned by one (1 of 3)" in quorum(receipt).detail
