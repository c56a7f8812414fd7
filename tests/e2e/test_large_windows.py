"""A window of many tenants, slots and accounts, from its commitments to its verdict."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import scenario as harness
from ragaudit.encoding import canonical_json
from ragaudit.lab.scenario.services import documents
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.settings import Settings
from ragaudit.prover.store.accounts import Account, Accounts
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TENANTS, SLOTS, ACCOUNTS, ASKING, ROWS = 300, 100_000, 2_000, 40, 6
WINDOW: dict[str, Any] = {
    **{"length_seconds": 36_000, "opens_after_seconds": 36_000, "sampling_after_seconds": 3_600},
    **{"activation_every_seconds": 10_000, "merge_delay_seconds": 3_000, "slots": SLOTS},
    "audit": {
        **{"mode": "B", "beta": "0.1", "deadline_seconds": 600},
        "tenants": {"eta": "0.1", "minimum": 1},
        "submitters": {"by": "tenant", "eta": "0.1", "minimum": 1},
    },
}


def tenant(account: int) -> str:
    """Return the tenant of an account."""
    return f"tenant-{account % TENANTS:05}"


def fill(settings: Settings) -> dict[str, str]:
    """Give each tenant a few documents, and make the accounts; return the keys of those who ask."""
    store = Store.open(settings.store.url)
    backend, accounts = StoredDocuments(store), Accounts(store)
    for number in range(TENANTS):
        backend.add(tenant(number), documents(tenant(number), ROWS))
    keys = {f"a{number}": accounts.add(tenant(number), f"a{number}") for number in range(ACCOUNTS)}
    store.close()
    return keys


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[harness.ProverScenario]:
    """A prover of many tenants and accounts, and a verifier; no window yet."""
    monkeypatch.setattr(harness, "fill", fill)
    monkeypatch.setattr(harness, "_set_up", [])  # others' provider has two tenants
    with harness.scenarios(tmp_path) as make:
        yield make()


def test_a_large_window_lives_through(large: harness.ProverScenario) -> None:
    large.create(**WINDOW)
    large.drive(State.COUNTERSIGNED)
    live, registrar = large.service.open_windows.get("w1"), large.service.registrar
    for number in range(ACCOUNTS):
        registrar.register(live, Account(f"a{number}", tenant(number)), None, None)
    large.service.driver.checkpoint("w1")
    large.clock.at(large.policy().start)
    large.drive(State.OPEN)
    receipts = [asked(large, number) for number in range(ASKING)]
    large.service.driver.checkpoint("w1")
    answer = large.verifier.post(
        "/v1/windows/w1/receipts", content=canonical_json.dumps({"receipts": receipts})
    )
    assert answer.json() == {"accepted": ASKING, "known": 0}
    large.hand_over()
    large.draw()
    verdict = large.decide(steps=100_000)
    failed = [each for each in verdict["checks"] if each["status"] == "FAIL"]
    assert not failed and verdict["result"] == "PASS"
    assert verdict["counts"]["accounts"] == ACCOUNTS
    assert verdict["counts"]["records"] == verdict["counts"]["receipts"] == ASKING
    assert len(verdict["scope"]["tenants"]) == TENANTS


def asked(large: harness.ProverScenario, account: int) -> Any:
    """Ask as an account, and return the public part of its receipt."""
    answer = large.ask(f"a{account}", sha256(bytes([account])).hexdigest())
    assert answer.status_code == 200, answer.text
    return answer.json()["public"]
