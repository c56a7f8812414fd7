"""The dispute key that is kept of an account, for windows in which somebody else registers it."""

from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from exact_windows import EXACT
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.entries import Registration
from ragaudit.prover.command.checks import NobodyDisputes, run_checks
from ragaudit.prover.store.states import State
from scenario import ProverScenario

pytestmark = ON_EACH_ENGINE
MINE, ANOTHER = (PrivateKey.from_seed(bytes([n]) * 32).public.raw.hex() for n in (1, 2))


def keep(scenario: ProverScenario, user: str, key: str) -> Any:
    headers = scenario.headers(user)
    return scenario.api.put("/v1/dispute-key", json={"dispute_key": key}, headers=headers)


def countersigned(scenario: ProverScenario, name: str = "w1") -> None:
    scenario.service.create_window(name, EXACT)
    scenario.drive(State.COUNTERSIGNED)
    # The step that registers the accounts; repeated, as after a start.
    for _ in range(2):
        scenario.service.driver.step(name)


def registered(scenario: ProverScenario, user: str) -> str | None:
    """The dispute key in the window's log, which the reply beside it must agree with."""
    path = "/v1/windows/w1/account"
    shown = scenario.api.get(path, headers=scenario.headers(user)).json()
    key = Registration.parse(bytes.fromhex(shown["registration"]["body"])).dispute_key
    assert shown["dispute_key"] == (None if key is None else key.hex())
    return None if key is None else key.hex()


class TestRegisteredByTheProvider:
    @pytest.fixture(autouse=True)
    def _all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RAGAUDIT_PROVER__WINDOW__REGISTER_ACCOUNTS", "true")

    def test_with_the_key_that_the_account_gave(self, scenario: ProverScenario) -> None:
        assert keep(scenario, "ada", MINE).json() == {
            "tenant": "one", "name": "ada", "dispute_key": MINE,
        }  # fmt: skip
        countersigned(scenario)
        assert [registered(scenario, user) for user in ("ada", "bob", "cyd")] == [MINE, None, None]

    def test_what_is_logged_stays(self, scenario: ProverScenario) -> None:
        """A key that comes after the registration is of windows to come, and changes nothing."""
        keep(scenario, "ada", MINE)
        countersigned(scenario)
        accounts = scenario.service.accounts
        accounts.keep_dispute_key(accounts.named("ada"), bytes.fromhex(ANOTHER), over=True)
        keep(scenario, "bob", ANOTHER)
        scenario.service.driver.step("w1")
        assert (registered(scenario, "ada"), registered(scenario, "bob")) == (MINE, None)
        path = "/v1/windows/w1/registration"
        for key, status in ((None, 200), (MINE, 200), (ANOTHER, 409)):
            body = {"anchor": None, "dispute_key": key}
            assert scenario.post(path, "ada", body).status_code == status, key

    def test_the_check_warns_of_who_has_none(self, scenario: ProverScenario) -> None:
        def fault() -> Any:
            return run_checks(scenario.settings)["disputes"]

        assert isinstance(fault(), NobodyDisputes) and "ada, bob, cyd" in fault().what
        for user in ("ada", "bob"):
            keep(scenario, user, MINE)
        assert fault().what == "nobody could dispute the answers of cyd"
        keep(scenario, "cyd", ANOTHER)
        assert fault() is None


def test_who_registers_brings_another(scenario: ProverScenario) -> None:
    keep(scenario, "ada", MINE)
    keep(scenario, "bob", MINE)
    scenario.service.create_window("w1", EXACT)
    scenario.drive(State.COUNTERSIGNED)
    path = "/v1/windows/w1/registration"
    assert scenario.post(path, "ada", {"dispute_key": ANOTHER}).status_code == 201
    assert scenario.post(path, "bob", {}).status_code == 201
    assert (registered(scenario, "ada"), registered(scenario, "bob")) == (ANOTHER, MINE)


def test_a_stolen_api_key_does_not_take_the_disputes(scenario: ProverScenario) -> None:
    assert keep(scenario, "ada", MINE).status_code == 200
    assert keep(scenario, "ada", MINE).status_code == 200
    answer = keep(scenario, "ada", ANOTHER)
    assert answer.status_code == 409 and "only the operator replaces it" in answer.text
    scenario.keys["ada"] = scenario.service.accounts.rotate_key("ada")
    assert keep(scenario, "ada", ANOTHER).status_code == 409
    path, body = "/v1/operator/accounts/ada/dispute-key", {"dispute_key": ANOTHER}
    assert scenario.api.put(path, json=body, headers=scenario.headers("ada")).status_code == 401
    assert scenario.api.put(path, json=body, headers=scenario.operator).status_code == 200
    assert keep(scenario, "ada", ANOTHER).status_code == 200
    nobody = "/v1/operator/accounts/nobody/dispute-key"
    assert scenario.api.put(nobody, json=body, headers=scenario.operator).status_code == 404


def test_what_is_no_key_is_kept_of_nobody(scenario: ProverScenario) -> None:
    """A registration that nobody is there to mend must not fail for it later."""
    for key in ("00" * 32, "ff" * 32, "01" + "00" * 31, MINE[:-2], MINE.upper(), None):
        answer = keep(scenario, "ada", key)  # type: ignore[arg-type]
        assert answer.status_code == 400, (key, answer.text)
        made = {"tenant": "one", "name": "eve", "dispute_key": key or "0"}
        answer = scenario.api.post("/v1/operator/accounts", json=made, headers=scenario.operator)
        assert answer.status_code == 400, (key, answer.text)
    accounts = scenario.service.accounts.all()
    assert [(each.name, each.dispute_key) for each in accounts] == [
        ("ada", None), ("bob", None), ("cyd", None),
    ]  # fmt: skip
    assert scenario.api.put("/v1/dispute-key", json={"dispute_key": MINE}).status_code == 401
