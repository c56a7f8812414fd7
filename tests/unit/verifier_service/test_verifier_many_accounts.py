"""Windows of many accounts: what each submission costs, and what slots take that nobody uses."""

from pathlib import Path
from typing import Any

from ragaudit.ledger.messages.promises import Refusal
from ragaudit.verifier.service import submissions, tables
from ragaudit.verifier.settings import Limits
from service_submissions import give_entries, post
from sqlalchemy import Engine, func, insert, select
from sqlite_work import steps
from verifier_service_harness import ORIGIN, START, Story, VerifierScenario, pseudonym

MOST = submissions.most_slots(Limits().submitted_bytes)


def refuse(story: Any, counter: int) -> None:
    """Hand in a refusal of the first account."""
    key, log = story.scenario.provider_key, story.scenario.log.key.name
    document = Refusal(
        origin=log, pseudonym=pseudonym(0), counter=counter, reason="budget", time=1000 * START
    ).signed(key)
    answer = post(story, "refusals", {"refusals": [document.to_json()]})
    assert answer.json() == {"accepted": 1, "known": 0}


def test_a_submission_costs_the_same_however_many_accounts_submit(story: Any) -> None:
    """An account finds the sums of its share and of all; nobody adds up those of the others."""
    give_entries(story)
    database = story.scenario.service.database
    refuse(story, 1)  # from now on there are its rows
    alone = steps(database.engine, lambda: refuse(story, 2))
    others = [number.to_bytes(32, "big") for number in range(5_000)]
    with database.write() as transaction:
        rows = [{"window": ORIGIN, "kind": "refusal", "account": one, "bytes": 0} for one in others]
        transaction.connection.execute(insert(tables.submission_space), rows)
    assert 0 < steps(database.engine, lambda: refuse(story, 3)) <= 2 * alone


def test_slots_that_nobody_uses_take_nothing(tmp_path: Path, auditor: Any) -> None:
    """What is stored of a window follows from what is submitted, and not from its slots."""
    found = []
    for slots in (4, MOST):
        scenario = VerifierScenario(tmp_path / str(slots), auditor)
        with scenario.running():
            assert scenario.register(slots=slots).status_code == 201
            scenario.put_indexes()
            assert scenario.countersign().status_code == 200
            story = Story(scenario)
            give_entries(story)
            refuse(story, 1)
            found.append(rows(scenario.service.database.engine))
    assert found[0] == found[1]


def rows(engine: Engine) -> dict[str, int]:
    """Return how many rows each table has."""
    with engine.connect() as connection:
        counted = {
            table.name: connection.scalar(select(func.count()).select_from(table))
            for table in tables.metadata.sorted_tables
        }
    return {name: count or 0 for name, count in counted.items()}
