"""The chain of windows as the service publishes it (docs/spec/08-services.md §8.11)."""

from typing import Any

from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.messages.window_chain import Link, WindowChain
from ragaudit.prover.store.states import State
from scenario import ProverScenario
from whole_windows import verdict


def shown(scenario: ProverScenario) -> list[tuple[str, int | None, str | None]]:
    chain = WindowChain.from_json(scenario.api.get("/v1/window-chain").json())
    links: tuple[Link, ...] = chain.verify([scenario.policy().keys.verifier])
    return [(link.window, link.size, link.continues) for link in links]


def test_each_window_is_shown_with_its_end_and_the_one_it_continues(make_scenario: Any) -> None:
    scenario: ProverScenario = make_scenario()
    assert scenario.api.get("/v1/window-chain").json()["windows"] == []
    scenario.open()
    assert shown(scenario) == [("w1", None, None)]
    scenario.ask()
    assert verdict(scenario)["result"] == "PASS"
    scenario.create("w2")
    scenario.drive(State.COUNTERSIGNED, "w2")
    # A window that nobody countersigned is none of the chain.
    scenario.create("w3")
    final, keys = scenario.service.windows.get("w1").final_checkpoint, scenario.policy().keys
    assert final is not None
    end = verify_cosigned(final, keys.log, CosignerPolicy((keys.cosigner,), 1)).signed.head
    assert shown(scenario) == [("w1", end.size, None), ("w2", None, "w1")]
