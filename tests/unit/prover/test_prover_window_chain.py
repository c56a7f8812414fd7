"""The chain of windows as the service publishes it (docs/spec/08-services.md §8.11)."""

from typing import Any, cast

import pytest
from ragaudit.client.cli import app
from ragaudit.ledger.log.cosignatures import CosignerPolicy, verify_cosigned
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.ledger.messages.window_chain import Link, WindowChain
from ragaudit.prover.errors import KeyChanged
from ragaudit.prover.keys import create_key
from ragaudit.prover.store.states import State
from ragaudit.verifier.service import providers
from scenario import ProverScenario
from typer.testing import CliRunner
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


def test_the_providers_key_is_changed_between_windows(make_scenario: Any) -> None:
    """The log's key is another one in each window anyway."""
    scenario: ProverScenario = make_scenario()
    file, verifier = scenario.settings.keys.provider_file, cast(Any, scenario.verifier.app)
    pinned = verifier.state.service.database
    old_file = file.read_bytes()
    scenario.open()
    receipt = scenario.ask().json()["public"]
    file.unlink()
    new = create_key(file).public
    # Not within a window: its policy names the key that signs.
    scenario.restart()
    with pytest.raises(KeyChanged):
        scenario.service.start()
    new_file = file.read_bytes()
    file.write_bytes(old_file)
    scenario.restart()
    assert verdict(scenario)["result"] == "PASS"
    old = scenario.policy().keys.provider
    file.write_bytes(new_file)
    providers.remove(pinned, "provider.example")
    providers.add(pinned, "provider.example", new)
    scenario.restart()
    scenario.open("w2")
    assert scenario.ask(name="w2").status_code == 200
    scenario.service.driver.checkpoint("w2")
    chain = WindowChain.from_json(scenario.api.get("/v1/window-chain").json())
    links = chain.verify([scenario.policy("w2").keys.verifier])
    assert [link.provider_key for link in links] == [old, new]
    assert [link.continues for link in links] == [None, "w1"]
    assert len({link.log for link in links}) == 2
    shown = scenario.folder / "chain.json"
    shown.write_bytes(chain.encode())
    pin = scenario.policy("w2").keys.verifier.raw.hex()
    said = CliRunner().invoke(app, ["verify-windows", str(shown), "--verifier-key", pin]).output
    first, second = said.splitlines()
    assert "provider key" not in first
    assert second.endswith(f"new provider key {new.raw.hex()}")
    # What was signed before stays what it was, under the key of its own window.
    PublicReceipt.from_json({**receipt, "proof": None}).verify(old)
    assert scenario.api.get(f"/v1/windows/w1/receipts/{receipt['index']}/proof").status_code == 200
