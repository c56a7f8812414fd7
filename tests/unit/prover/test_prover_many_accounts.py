"""A window of many accounts: what a registration and a look-up cost."""

from hashlib import sha256

from ragaudit.prover.store import tables
from ragaudit.prover.store.states import State
from ragaudit.prover.window.registrations import find_pseudonym
from scenario import ProverScenario
from sqlalchemy import insert
from sqlite_work import steps

MANY = 3_000


def with_many(scenario: ProverScenario) -> None:
    """Store registrations of as many accounts, on the slots behind the first two."""
    names = [f"account {number}" for number in range(MANY)]
    accounts = [
        {"id": name, "tenant": "one", "key_digest": sha256(name.encode()).digest()}
        for name in names
    ]
    registrations = [
        {
            **{"window": "w1", "account": name, "tenant": "one", "slot": slot, "position": slot},
            **{"pseudonym": sha256(name.encode()).digest(), "counter": 0, "last_time": 0},
        }
        for slot, name in enumerate(names, start=2)
    ]
    with scenario.service.store.write() as connection:
        connection.execute(insert(tables.account), accounts)
        connection.execute(insert(tables.registration), registrations)


def test_a_registration_costs_the_same_however_many_there_are(scenario: ProverScenario) -> None:
    scenario.create(slots=2 * MANY)
    scenario.drive(State.COUNTERSIGNED)
    engine = scenario.service.store.engine
    scenario.register("ada")
    few = steps(engine, lambda: scenario.register("bob"))
    with_many(scenario)
    assert 0 < steps(engine, lambda: scenario.register("cyd")) <= 2 * few
    answer = scenario.api.get("/v1/windows/w1/account", headers=scenario.headers("cyd"))
    assert answer.json()["slot"] == MANY + 2


def test_a_pseudonym_is_found_without_reading_the_others(scenario: ProverScenario) -> None:
    scenario.create(slots=2 * MANY)
    scenario.drive(State.COUNTERSIGNED)
    scenario.register("ada")
    pseudonym = scenario.service.open_windows.get("w1").pseudonym_of("ada")

    def find() -> None:
        with scenario.service.store.read() as connection:
            found = find_pseudonym(connection, "w1", pseudonym)
        assert found is not None and found.account == "ada"

    engine = scenario.service.store.engine
    find()  # the tables are known from now on
    few = steps(engine, find)
    with_many(scenario)
    assert steps(engine, find) <= few + 100  # one step a registration would be 3,000
