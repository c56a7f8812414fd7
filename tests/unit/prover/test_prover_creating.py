"""What is looked at when a window is created, and who is registered in it without asking."""

from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from exact_windows import EXACT
from ragaudit.circuits import statements
from ragaudit.embedders.base import NoEmbedder
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.ledger.messages.entries import Registration
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.command.checks import NobodyDisputes, run_checks
from ragaudit.prover.errors import MalformedDocument
from ragaudit.prover.index.builder import IndexBuilder
from ragaudit.prover.index.committed import check_size
from ragaudit.prover.randomness import OsRandomness
from ragaudit.prover.settings import Settings
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.states import State
from ragaudit.prover.work import WindowWork
from scenario import ProverScenario

pytestmark = ON_EACH_ENGINE


def created(scenario: ProverScenario, **overrides: Any) -> Any:
    body = {"window": "w1", "overrides": {"privacy": "none", "top_k_max": 4, **overrides}}
    return scenario.api.post("/v1/operator/windows", json=body, headers=scenario.operator)


class TestTextsWithoutAnEmbedder:
    """A window whose accounts could ask what nobody can embed is not created."""

    @pytest.mark.parametrize("kinds", [{}, {"query_kinds": ["text", "vector"]}])
    def test_they_are_refused(self, make_scenario: Any, kinds: dict[str, Any]) -> None:
        scenario = make_scenario(embedder=lambda _: NoEmbedder(lambda: 16))
        answer = created(scenario, **kinds)
        assert answer.status_code == 400, answer.text
        assert answer.json()["where"] == "embedder.name"
        assert "no embedder is configured" in answer.json()["detail"]
        assert scenario.service.windows.all() == []

    def test_also_in_a_window_of_version_1(self, make_scenario: Any) -> None:
        scenario = make_scenario(embedder=lambda _: NoEmbedder(lambda: 16))
        assert created(scenario, privacy=None, sigma="40").status_code == 400
        assert scenario.service.windows.all() == []

    def test_vectors_alone_need_none(self, make_scenario: Any) -> None:
        scenario = make_scenario(embedder=lambda _: NoEmbedder(lambda: 16))
        assert created(scenario, query_kinds=["vector"]).status_code == 201


class TestSize:
    """An index that no argument can be made for is refused before it is embedded."""

    def many(self, make_scenario: Any, rows: int) -> ProverScenario:
        class Many(StoredDocuments):
            def count(self, tenant: str) -> int:
                return rows if tenant == "two" else super().count(tenant)

        def backend(_: Settings, store: Store) -> Many:
            return Many(store)

        scenario: ProverScenario = make_scenario(backend=backend)
        return scenario

    def test_when_a_window_is_created(self, make_scenario: Any) -> None:
        # With d = 16: 4095² · 20 · N² reaches 2^82 between N = 2^26 and 2^27, 127² · 20 · N² later.
        scenario = self.many(make_scenario, 2**27)
        answer = created(scenario)
        assert answer.status_code == 400, answer.text
        assert answer.json()["where"] == "tenant two"
        assert "rows are too many for this bound" in answer.json()["detail"]
        assert scenario.service.windows.all() == []
        assert created(scenario, privacy="gaussian", sigma="40").status_code == 201

    def test_the_largest_that_fits(self, make_scenario: Any) -> None:
        assert created(self.many(make_scenario, 2**26)).status_code == 201

    @pytest.mark.parametrize("bound", [127, 4095])
    def test_the_bound_is_that_of_the_specification(self, bound: int) -> None:
        most = int((2**82 / (bound**2 * (384 + 4))) ** 0.5)
        assert most**2 * bound**2 * 388 < 2**82 <= (most + 1) ** 2 * bound**2 * 388
        check_size("one", most, 384, bound)
        with pytest.raises(MalformedDocument, match=r"too many .* N² B² \(d\+4\) < 2\^82"):
            check_size("one", most + 1, 384, bound)

    def test_when_it_is_committed(
        self, scenario: ProverScenario, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Null rows count: a version can outgrow what its first one was allowed."""
        monkeypatch.setattr(statements, "_PROJECTIONS", 12**2 * 127**2 * 20)

        class Untouched(IndexBuilder):
            def commit_rows(self, rows: Any, blindings: Any) -> bytes:
                raise AssertionError

        work = WindowWork(scenario.service.runner, "w1")
        builder = Untouched(scenario.service.backend, HashEmbedder(16), OsRandomness(), 100, work)
        with pytest.raises(MalformedDocument, match="12 rows are too many"):
            builder.build(policy_digest=bytes(32), window="w1", tenant="one")


class TestRegisteredAccounts:
    """`window.register_accounts`: who has an account can ask from the opening on."""

    @pytest.fixture(autouse=True)
    def _all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RAGAUDIT_PROVER__WINDOW__REGISTER_ACCOUNTS", "true")

    def opened(self, scenario: ProverScenario, **overrides: Any) -> None:
        scenario.service.create_window("w1", {**EXACT, **overrides})
        scenario.drive(State.COUNTERSIGNED)
        # The step that the driver takes until the verifier releases the first activation.
        scenario.service.driver.step("w1")
        scenario.service.driver.checkpoint("w1")
        scenario.clock.at(scenario.policy().start)
        scenario.drive(State.OPEN)

    def test_all_of_them_can_ask(self, scenario: ProverScenario) -> None:
        self.opened(scenario)
        for account in ("ada", "bob", "cyd"):
            assert scenario.ask(account).status_code == 200
        path = "/v1/operator/windows/w1"
        assert scenario.api.get(path, headers=scenario.operator).json()["accounts"] == 3

    def test_no_slot_twice(self, scenario: ProverScenario) -> None:
        """The step is repeated, also by a prover that was started anew."""
        scenario.service.create_window("w1", EXACT)
        scenario.drive(State.COUNTERSIGNED)
        scenario.service.driver.step("w1")
        size = scenario.service.open_windows.get("w1").log.entries.head().size
        scenario.restart()
        scenario.service.driver.step("w1")
        assert scenario.service.open_windows.get("w1").log.entries.head().size == size == 4

    def test_as_many_as_there_are_slots(
        self, scenario: ProverScenario, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.opened(scenario, slots=2)
        answered = [scenario.ask(name).status_code for name in ("ada", "bob", "cyd")]
        assert sorted(answered) == [200, 200, 409]
        assert "not every account is registered" in caplog.text

    def test_a_later_account_waits_for_the_next_instant(self, scenario: ProverScenario) -> None:
        self.opened(scenario)
        scenario.keys["eve"] = scenario.service.accounts.add("two", "eve")
        scenario.register("eve")
        assert scenario.ask("eve").status_code == 503


# The dispute key that is kept of an account, for windows in which somebody else registers it.

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
