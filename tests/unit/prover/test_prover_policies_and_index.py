"""What the settings make of a policy, and building the index commitment."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ragaudit import core
from ragaudit.circuits.statements import IndexStatement
from ragaudit.encoding.errors import MalformedSettings, RejectedError
from ragaudit.ledger.messages.policy import Policy
from ragaudit.privacy.coalition import Record
from ragaudit.prover.errors import MalformedDocument, VerifierUnreachable
from ragaudit.prover.index.builder import IndexBuilder
from ragaudit.prover.index.committed import IndexForm, last_index
from ragaudit.prover.lifecycle.closing import Closing
from ragaudit.prover.lifecycle.policy_builder import PolicyBuilder, noise_of
from ragaudit.prover.settings import WindowSettings
from ragaudit.prover.store.states import State
from ragaudit.verifier.engines import engine
from ragaudit.verifier.procedure.indexes import check_norm, verify_argument


class TestPolicies:
    """What the settings make of a policy."""

    def test_sigma_and_epsilon_determine_each_other(self) -> None:
        calibrated = WindowSettings(epsilon_acc="5", sigma=None)
        sigma, epsilon, _ = noise_of(calibrated)
        given = calibrated.model_copy(update={"sigma": sigma, "epsilon_acc": None})
        assert epsilon == "5" and float(noise_of(given)[1]) <= 5

    @pytest.mark.parametrize(
        "settings",
        [
            WindowSettings(sigma=None, epsilon_acc=None),
            WindowSettings(sigma="0.01", epsilon_acc=None),
        ],
    )
    def test_noise_that_cannot_be(self, settings: WindowSettings) -> None:
        with pytest.raises(MalformedSettings):
            noise_of(settings)

    @pytest.mark.parametrize(
        "overrides",
        [
            {"coalition_max": 4, "sigma": "2", "delta_policy": "0.000000000001"},
            {"estimator": {"sketch_bits": 65}},
            {"experiment_seed": ""},
            {"slots": 10**6, "queries_per_account": 10**6},
            {"audit": {"mode": "B", "beta": "1"}},
        ],
    )
    def test_overrides_that_make_no_policy(self, scenario: Any, overrides: dict[str, Any]) -> None:
        body = {"window": "w1", "overrides": overrides}
        answer = scenario.api.post("/v1/operator/windows", json=body, headers=scenario.operator)
        assert answer.status_code == 400, answer.text
        assert scenario.service.windows.all() == []

    def test_an_integrity_window(self, scenario: Any) -> None:
        settings = {
            "privacy": "none",
            "public_columns": {"year": "integer", "lang": "string"},
            "filters": True,
            "query_kinds": ["vector", "text"],
            "retry_seconds": 5,
        }
        window = scenario.service.create_window("w1", settings)
        policy = Policy.parse(window.policy)
        assert (policy.noised, policy.norm_bound) == (False, 4095)
        terms = policy.retrieval
        assert [each.name for each in terms.public_columns] == ["lang", "year"]
        assert (terms.filters, terms.query_kinds) == (True, ("text", "vector"))
        assert (terms.metric, terms.retry_seconds, terms.versions) == ("cosine", 5, False)

    def test_a_noised_window(self, scenario: Any) -> None:
        window = scenario.service.create_window("w1", {"privacy": "gaussian", "sigma": "40"})
        policy = Policy.parse(window.policy)
        assert (policy.sigma, policy.norm_bound) == ("40", 127)
        assert not policy.retrieval.filters
        assert not policy.by_direction

    def test_a_window_whose_estimate_is_by_direction(self, scenario: Any) -> None:
        """The claim at the close is that of spec 7.5: no pair has to be near in time."""
        settings = {"privacy": "gaussian", "coalition_estimate": "direction"}
        window = scenario.service.create_window("w1", {**settings, "queries_per_account": 2})
        policy = Policy.parse(window.policy)
        assert policy.by_direction
        asked = [Record(name, 10**7 * n, bytes(32)) for n, name in enumerate((b"a", b"a", b"b"))]
        live = SimpleNamespace(policy=policy)
        assert Closing.coalition_claim(scenario.service, live, asked) == 2  # type: ignore[arg-type]

    def test_an_estimate_that_has_no_meaning(self, scenario: Any) -> None:
        unnoised = {"privacy": "none", "coalition_estimate": "direction"}
        with pytest.raises(MalformedSettings, match="coalition_estimate"):
            scenario.service.create_window("w1", unnoised)

    def test_too_few_documents_for_k(self, scenario: Any) -> None:
        with pytest.raises(MalformedDocument, match="12 documents"):
            scenario.create(top_k_max=12)

    def test_seeded_windows_say_so(self, scenario: Any) -> None:
        scenario.create(experiment_seed="again")
        scenario.drive(State.COUNTERSIGNED)
        assert scenario.policy().experiment_seed == "again"
        one, two = (
            scenario.service.open_windows.get("w1").indexes[each] for each in ("one", "two")
        )
        assert one.salts != two.salts
        scenario.service.windows.note("w1", unusable="over")

    def test_a_dishonest_policy_is_refused(self, make_scenario: Any) -> None:
        class Loud(PolicyBuilder):
            def document(self, **values: Any) -> Any:
                return {**super().document(**values), "epsilon_acc": "0.0001"}

        scenario = make_scenario(policy_builder=Loud)
        scenario.create()
        scenario.drive(State.REFUSED)


class TestIndex:
    """Building the index commitment."""

    def builder(self, scenario: Any, documents: Any, kind: Any = IndexBuilder) -> IndexBuilder:
        class Given:
            def pages(self, _tenant: Any, _rows: Any) -> Iterator[Any]:
                yield documents

        from ragaudit.prover.randomness import OsRandomness
        from ragaudit.prover.work import WindowWork

        work = WindowWork(scenario.service.runner, "w1")
        return kind(Given(), scenario.service.embedder, OsRandomness(), 100, work)

    def build(self, scenario: Any, documents: Any) -> Any:
        return self.builder(scenario, documents).build(
            policy_digest=bytes(32), window="w1", tenant="one"
        )

    def test_two_builds_hide_what_is_equal(self, scenario: Any) -> None:
        documents = scenario.service.backend.fetch("one", ["one-0", "one-1", "one-2"])
        first, second = self.build(scenario, documents), self.build(scenario, documents)
        assert first.rows.tobytes() == second.rows.tobytes()
        for name in ("root", "commitments", "salts", "proof"):
            assert getattr(first, name) != getattr(second, name)
        assert "salts=" not in repr(first)

    def test_a_new_version_commits_to_changed_rows_only(
        self, scenario: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids = [f"one-{n}" for n in range(6)]
        documents = scenario.service.backend.fetch("one", ids)
        before = self.build(scenario, documents)
        # One document replaced, one left out, one new, and another order.
        replaced = replace(documents[1], content=documents[5].content)
        after = [documents[4], replaced, documents[0], documents[2], documents[3]]
        committed: list[int] = []

        class Counting(IndexBuilder):
            def commit_rows(self, rows: Any, blindings: Any) -> Any:
                committed.append(len(rows))
                return super().commit_rows(rows, blindings)

        again = self.builder(scenario, after, Counting).build(
            policy_digest=bytes(32), window="w1", tenant="one", previous=before
        )
        assert committed == [1]
        assert again.commitments == core.commit_rows(again.rows, again.blindings)
        old = {before.commitments[at : at + 32] for at in range(0, len(before.commitments), 32)}
        assert not old & {again.commitments[at : at + 32] for at in range(0, 160, 32)}
        assert not set(map(bytes, before.blindings)) & set(map(bytes, again.blindings))
        statement = IndexStatement.of(
            policy_digest=bytes(32), window="w1", tenant="one", version=1,
            index_root=again.root, dimension=again.dimension, commitments=again.commitments,
        )  # fmt: skip
        assert statement.rows == 5
        core.verify_index(statement, again.proof)

    def test_inner_products_show_the_longest_row_that_the_verifier_bounds(
        self, scenario: Any
    ) -> None:
        ids = [f"one-{n}" for n in range(5)]
        documents = scenario.service.backend.fetch("one", ids)
        vectors = scenario.service.embedder.embed([each.content for each in documents])
        longest = float(np.linalg.norm(np.asarray(vectors, dtype=np.float64), axis=1).max())
        for factor, kept in ((1.001, True), (3.9, True), (4.2, False), (1e3, False)):
            norm = f"{factor * longest:.3f}"
            terms = SimpleNamespace(metric="inner-product", largest_norm=norm)
            policy: Any = SimpleNamespace(digest=bytes(32), squared_norm=127**2, retrieval=terms)
            form = IndexForm(metric="inner-product", largest_norm=Decimal(norm))
            index = self.builder(scenario, documents).build(
                policy_digest=bytes(32), window="w1", tenant="one", form=form
            )
            commitment = index.commitment("w1")
            verify_argument(commitment, policy, engine("core"))
            if kept:
                check_norm(commitment, policy, Fraction(4))
            else:
                with pytest.raises(RejectedError, match=f"largest_norm is {norm}"):
                    check_norm(commitment, policy, Fraction(4))

    def test_a_second_window_builds_on_the_first(self, make_scenario: Any) -> None:
        seen = []

        class Watching(IndexBuilder):
            def build(self, **values: Any) -> Any:
                seen.append(None if values["previous"] is None else values["previous"].tenant)
                return super().build(**values)

        scenario = make_scenario(index_builder=Watching)
        scenario.create()
        scenario.drive(State.COMMITTED)
        assert seen == [None, None]
        with scenario.service.store.read() as connection:
            found = last_index(connection, "two")
            assert last_index(connection, "unknown") is None
        assert found is not None and found.tenant == "two"

    def test_bad_documents(self, scenario: Any) -> None:
        documents = scenario.service.backend.fetch("one", ["one-0", "one-1"])
        with pytest.raises(MalformedDocument, match="1 documents"):
            self.build(scenario, documents[:1])
        with pytest.raises(MalformedDocument, match="duplicate"):
            self.build(scenario, [*documents, documents[0]])

    def test_an_interrupted_commitment_is_continued(self, make_scenario: Any) -> None:
        builds = []

        class Interrupted(IndexBuilder):
            def build(self, **values: Any) -> Any:
                builds.append(values["tenant"])
                if builds == ["one", "two"]:
                    raise VerifierUnreachable("killed here")
                return super().build(**values)

        scenario = make_scenario(index_builder=Interrupted)
        scenario.create()
        with pytest.raises(VerifierUnreachable):
            scenario.service.driver.step("w1")
        assert scenario.state() is State.DRAFT
        scenario.restart(replace(scenario.components, index_builder=Interrupted))
        scenario.drive(State.COMMITTED)
        assert builds == ["one", "two", "two"]
