"""Id keys in committed indexes, their secret, and the lists that end the log (spec 5.16)."""

from dataclasses import replace
from typing import Any

import pytest
from exact_windows import change, later, start, texts
from ragaudit.encoding.errors import MalformedSettings, RejectedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.documents import check_secret, id_key, id_keys
from ragaudit.ledger.messages.entries import Accounts, Close, Documents, Opening
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.errors import VerifierUnreachable
from ragaudit.prover.index.committed import find_index, load_indexes
from ragaudit.prover.lifecycle.refreshing import Refresher
from ragaudit.prover.lifecycle.retention import _TABLES
from ragaudit.prover.store import tables
from ragaudit.prover.window.lists import document_list
from ragaudit.prover.window.records import entries_of
from ragaudit.verifier.procedure.indexes import check_place
from scenario import ProverScenario
from sqlalchemy import select
from whole_windows import finish

OWNED: dict[str, Any] = {"owners": {}, "versions": True}
NEW = Document("one-new", "a new document")


def index(scenario: ProverScenario, version: int = 1) -> Any:
    return scenario.service.open_windows.get("w1").versions.get("one", version)


def logged(scenario: ProverScenario, kind: str) -> list[Any]:
    with scenario.service.store.read() as connection:
        return list(entries_of(connection, "w1", kind))


def refreshed(scenario: ProverScenario, documents: list[Document]) -> int:
    StoredDocuments(scenario.service.store).add("one", documents, replace=True)
    return scenario.service.refresher.refresh("w1", "one")


def test_rows_have_the_keys_of_their_ids(scenario: ProverScenario) -> None:
    start(scenario, **OWNED)
    assert scenario.policy().owners is not None
    made = index(scenario)
    secret = made.document_secret
    assert made.id_keys == id_keys("w1", "one", secret, made.ids)
    [entry] = logged(scenario, Opening.KIND)
    opening = Opening.parse(entry.body)
    opening.check_terms(noised=False, owned=True)
    for tenant in opening.tenants:
        with scenario.service.store.read() as connection:
            own = load_indexes(connection, "w1")[tenant.tenant].document_secret
        check_secret("w1", tenant.tenant, own, tenant.id_commitment)
        assert (own == secret) == (tenant.tenant == "one")
    assert opening.tenant("one").index_root == made.tree.root == made.commitment("w1").root


def test_a_policy_without_owners_has_none(scenario: ProverScenario) -> None:
    start(scenario)
    made = index(scenario)
    assert (made.document_secret, made.id_keys, made.id_key_of(0)) == (b"", b"", None)
    [entry] = logged(scenario, Opening.KIND)
    assert Opening.parse(entry.body).tenant("one").id_commitment is None
    finish(scenario)
    assert logged(scenario, Documents.KIND) == []


def test_versions_keep_secret_and_keys_across_a_restart(scenario: ProverScenario) -> None:
    start(scenario, **OWNED)
    secret, keys = index(scenario).document_secret, index(scenario).id_keys
    assert refreshed(scenario, [*texts()[1:], NEW]) == 2
    scenario.restart()
    assert refreshed(scenario, [*texts(), NEW]) == 3
    for version in (2, 3):
        made = index(scenario, version)
        assert made.document_secret == secret and made.id_keys.startswith(keys)
        assert made.id_keys[-32:] == id_key("w1", "one", secret, "one-new")
        # A null row keeps its id, and so its key.
        assert made.id_keys == id_keys("w1", "one", secret, made.ids)
    assert index(scenario, 2).columns[0] == "null"


def test_another_window_has_another_secret(scenario: ProverScenario) -> None:
    start(scenario, **OWNED)
    finish(scenario)
    scenario.service.create_window("w2", {"privacy": "none", "owners": {}})
    scenario.service.driver.step("w2")
    with scenario.service.store.read() as connection:
        other = find_index(connection, "w2", "one", 1)
    assert other is not None and len(other.document_secret) == 32
    assert other.document_secret != index(scenario).document_secret


@pytest.mark.parametrize("account_index", [True, False])
def test_lists_stand_at_the_end_of_the_log(scenario: ProverScenario, account_index: bool) -> None:
    start(scenario, **OWNED, account_index=account_index)
    gone = texts()[3].id
    change(scenario, gone, None)
    assert scenario.service.refresher.refresh("w1", "one") == 2
    assert refreshed(scenario, [*texts(), NEW]) == 3
    later(scenario, 140)
    finish(scenario)
    tail = [Documents.KIND] * len(scenario.policy().tenants)
    tail += [Accounts.KIND] * account_index + [Close.KIND]
    with scenario.service.store.read() as connection:
        table = tables.entry.c
        query = select(table.kind).where(table.window == "w1").order_by(table.position)
        assert list(connection.scalars(query))[-len(tail) :] == tail
        made = document_list(connection, "w1", "one")
    bodies = [Documents.parse(entry.body) for entry in logged(scenario, Documents.KIND)]
    assert [body.tenant for body in bodies] == list(scenario.policy().tenants)
    assert made.entry == next(body for body in bodies if body.tenant == "one")
    assert (made.entry.version, made.entry.documents) == (3, 13)
    secret = index(scenario).document_secret
    lives = {}
    for name in (gone, "one-0", NEW.id):
        (row,) = made.prove(id_key("w1", "one", secret, name))
        lives[name] = made.lives(made.position(row))
    assert lives == {gone: ((1, 1), (3, 3)), "one-0": ((1, 3),), NEW.id: ((3, 3),)}


def test_a_version_that_is_not_logged_is_in_no_list(make_scenario: Any) -> None:
    class Cut(Refresher):
        def _publish(self, live: Any, version: Any) -> None:
            raise VerifierUnreachable("killed here")

    scenario = make_scenario(refresher=Cut)
    start(scenario, **OWNED)
    with pytest.raises(VerifierUnreachable):
        refreshed(scenario, [*texts(), NEW])
    with scenario.service.store.read() as connection:
        assert find_index(connection, "w1", "one", 2) is not None
        made = document_list(connection, "w1", "one")
    assert (made.entry.version, made.entry.documents) == (1, 12)


def test_the_secret_goes_with_the_rows(scenario: ProverScenario) -> None:
    """It stands in the table of the blindings and nowhere else, and is deleted as they are."""
    start(scenario, **OWNED)
    secret = index(scenario).document_secret
    assert tables.index_version in {table for table, _ in _TABLES}
    with scenario.service.store.read() as connection:
        for table in tables.metadata.sorted_tables:
            for row in connection.execute(select(table)).mappings():
                holds = any(isinstance(v, bytes) and secret in v for v in row.values())
                assert holds == (table is tables.index_version and row["tenant"] == "one")
    shown = repr(index(scenario)) + repr(scenario.service.open_windows.get("w1"))
    assert secret.hex() not in shown and repr(secret) not in shown


def test_the_verifier_takes_id_keys_where_owners_check(scenario: ProverScenario) -> None:
    start(scenario, **OWNED)
    policy, commitment = scenario.policy(), index(scenario).commitment("w1")
    check_place(commitment, policy, "one", 1)
    with pytest.raises(RejectedError, match="id keys"):
        check_place(replace(commitment, id_keys=b""), policy, "one", 1)
    with pytest.raises(RejectedError, match="id keys"):
        check_place(commitment, replace(policy, owners=None), "one", 1)


def test_a_policy_names_owners_and_how_rows_are_sampled(make_scenario: Any) -> None:
    scenario = make_scenario()
    key = PrivateKey.from_seed(bytes(31) + b"o").public
    start(scenario, owners={"rows": {"minimum": 7}, "keys": {"one": key.raw.hex()}})
    terms = scenario.policy().owners
    assert scenario.policy().tenants == {"one": key, "two": None}
    assert terms.rows.to_json() == {"beta": "0.1", "eta": "0.0009765625", "minimum": 7}


def test_an_owner_of_no_tenant_is_refused(scenario: ProverScenario) -> None:
    keys = {"nobody": PrivateKey.from_seed(bytes(31) + b"o").public.raw.hex()}
    with pytest.raises(MalformedSettings) as error:
        scenario.service.create_window("w1", {"privacy": "none", "owners": {"keys": keys}})
    assert error.value.where == "window.owners.keys.nobody"
