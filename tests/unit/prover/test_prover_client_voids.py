"""A client goes on behind a voided charge only with its proof; each lie about one is refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from generation_channel import QUESTION
from generation_clients import Crash, Open, crash
from ragaudit.client import AnswerRejected
from ragaudit.client.state import StateDirectory
from ragaudit.ledger.messages.missing import VoidedCharge
from ragaudit.prover.answering import answering
from ragaudit.prover.errors import ChargeVoided
from scenario import ProverScenario

Lie = Callable[[VoidedCharge], VoidedCharge]


def charging(**changes: Any) -> Lie:
    """Show another charge entry than the logged one."""

    def change(shown: VoidedCharge) -> VoidedCharge:
        body = replace(shown.charged, **changes).encode()
        return replace(shown, charge=replace(shown.charge, body=body))

    return change


def voiding(**changes: Any) -> Lie:
    """Show another void than the logged one."""

    def change(shown: VoidedCharge) -> VoidedCharge:
        body = replace(shown.voided, **changes).encode()
        return replace(shown, void=replace(shown.void, body=body))

    return change


def later(seconds: int) -> Lie:
    """Show a void of another time."""
    return lambda shown: voiding(time=shown.voided.time + 1000 * seconds)(shown)


def charge_entry(**changes: Any) -> Lie:
    return lambda shown: replace(shown, charge=replace(shown.charge, **changes))


def void_entry(**changes: Any) -> Lie:
    return lambda shown: replace(shown, void=replace(shown.void, **changes))


def exchanged(shown: VoidedCharge) -> VoidedCharge:
    return void_entry(proof=shown.charge.proof)(shown)


def uncosigned(shown: VoidedCharge) -> VoidedCharge:
    """Show the void under a checkpoint that the log alone signed."""
    assert shown.void.proof is not None
    lines = shown.void.proof.splitlines(keepends=True)
    # The last line is the cosigner's signature.
    return void_entry(proof="".join(lines[:-1]))(shown)


LIES: dict[str, tuple[Lie, str]] = {
    "of another policy": (charging(policy_digest=bytes(32)), "policy"),
    "of another window": (charging(window="w2"), "window"),
    "of another account": (charging(pseudonym=bytes(32)), "pseudonym"),
    "of another counter": (charging(counter=1), "counter"),
    "the void of another charge": (voiding(charge=1), "the void of another charge"),
    "a void of another window": (voiding(window="w2"), "the void of another charge"),
    "a void of another tenant": (voiding(tenant="two"), "the void of another charge"),
    "a void while a claim is possible": (later(-3600), "while its promise could be claimed"),
    "a void dated ahead": (later(3600), "void at"),
    "a charge without a proof": (charge_entry(proof=None), "proof is outstanding"),
    "a void without a proof": (void_entry(proof=None), "proof is outstanding"),
    "the proof of another entry": (exchanged, "a proof of another index"),
    "a void that no log has": (void_entry(salt=bytes(32)), "proof"),
    "a charge that no log has": (charge_entry(salt=bytes(32)), "proof"),
    "a checkpoint that the verifier never saw": (uncosigned, "cosign"),
}


def test_a_client_goes_on_only_with_the_proof_of_the_void(
    opened: Open, channel: ProverScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    with monkeypatch.context() as patch:
        patch.setattr(StateDirectory, "keep_promise", crash)
        with pytest.raises(Crash):
            first.ask(QUESTION)
    first.close()
    policy = channel.policy()
    channel.clock.now += 1000 * (policy.promise_life_seconds + 3 * policy.clock_skew_seconds)
    asked = {"query": QUESTION, "counter": 0}
    assert channel.post("/v1/windows/w1/ask", "bob", asked).status_code == 425
    channel.service.driver.checkpoint("w1")
    client, honest = opened(), answering.voided

    def refused(show: Callable[[dict[str, Any]], Any], reason: str) -> None:
        def lie(*arguments: Any) -> ChargeVoided:
            error = honest(*arguments)
            assert isinstance(error, ChargeVoided)
            return ChargeVoided(error.what, voided=show(error.voided))

        with monkeypatch.context() as patch:
            patch.setattr(answering, "voided", lie)
            with pytest.raises(AnswerRejected, match=reason) as rejected:
                client.ask(QUESTION)
        assert isinstance(rejected.value.evidence, Path)

    def altered(change: Lie) -> Callable[[dict[str, Any]], Any]:
        return lambda shown: change(VoidedCharge.from_json(shown)).to_json()

    for change, reason in LIES.values():
        refused(altered(change), reason)
    refused(lambda _: None, "not an object")
    refused(lambda _: "voided", "not an object")
    refused(lambda shown: {**shown, "format": "ragaudit/v2/voided-charge"}, "format")
    refused(lambda shown: {**shown, "void": shown["charge"]}, "void")
    # No counter has moved, and the truth is still believed.
    assert client.ask(QUESTION).receipt.counter == 1
