"""What is looked at when a window is created, and who is registered in it without asking."""

from typing import Any

import pytest
from databases import ON_EACH_ENGINE
from exact_windows import EXACT
from ragaudit.circuits import statements
from ragaudit.embedders.base import NoEmbedder
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.prover.backends.stored import StoredDocuments
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
