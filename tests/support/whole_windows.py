"""A window of the prover's scenario from its first answer to the verdict, and its receipts."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from ragaudit.client.checks import CoreOperations
from ragaudit.embedders.base import Embedder, embed_quantised
from ragaudit.ledger.messages.entries import Opening
from ragaudit.ledger.messages.receipt_check import AccountView, WindowView, check_file
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.shown import ShownWindow
from ragaudit.prover.command.cli import app
from scenario import ProverScenario
from surface_app import serving
from typer.testing import CliRunner


def verdict(scenario: ProverScenario) -> dict[str, Any]:
    """Close the window, answer the challenge, and return the verdict's predicate."""
    challenged(scenario)
    return scenario.decide()


def challenged(scenario: ProverScenario) -> None:
    """Close the window, and go to when the challenge is stored and nothing is opened yet."""
    finish(scenario)
    scenario.draw()


def finish(scenario: ProverScenario) -> None:
    """Have everything cosigned, close the window, and hand its log over."""
    scenario.service.driver.checkpoint("w1")
    scenario.hand_over()


def checked(
    scenario: ProverScenario, files: Sequence[ReceiptFile], embedder: Embedder | None = None
) -> None:
    """Check every receipt of a window as its account, ada of tenant one, does.

    Args:
        files: all that the account was given, in the order of its queries.
        embedder: None where texts have none, so that step 9 stays open.
    """
    shown = ShownWindow.from_json(scenario.api.get("/v1/windows/w1").json())
    assert shown.opening is not None
    view = WindowView(
        scenario.policy(),
        Opening.parse(shown.opening.body),
        [each.covered_size for each in shown.activations],
        [(entry.index, entry.version) for entry in shown.versions],
    )
    account = scenario.api.get("/v1/windows/w1/account", headers=scenario.headers("ada")).json()
    for counter, file in enumerate(files):
        steps = check_file(
            file,
            view,
            CoreOperations(),
            embed=None if embedder is None else partial(embedded, embedder, view.policy.norm_bound),
            account=AccountView(
                tenant="one",
                pseudonym=bytes.fromhex(account["pseudonym"]),
                slot=account["slot"],
                registration_index=account["registration"]["index"],
                counter=counter,
            ),
        )
        # Outstanding is only what a plain account has not (10), or has not yet (2).
        left = {each.number for each in steps if each.status != "done"}
        assert left <= ({2, 9, 10} if embedder is None else {2, 10}), (counter, steps)


def embedded(embedder: Embedder, bound: int, texts: Sequence[str]) -> list[list[int]]:
    """Return the integers of texts in a window of norm bound B."""
    integers: list[list[int]] = embed_quantised(embedder, texts, bound).tolist()
    return integers


def refreshed(scenario: ProverScenario, tenant: str = "one", code: int = 0) -> Any:
    """What the command prints; it speaks HTTP with the service of the scenario."""
    with serving(scenario.api.app, lifespan="off") as port:
        arguments = ["index", "refresh", "w1", tenant, "--json"]
        arguments += ["--settings", str(scenario.folder / "prover/prover.yaml")]
        result = CliRunner().invoke(app, [*arguments, "--url", f"http://127.0.0.1:{port}"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)
