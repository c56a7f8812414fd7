"""A first release's window after `ragaudit prover migrate` and `ragaudit verifier migrate`."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from migrations import load_dump
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.database import take_database
from ragaudit.ledger.log.notes import ED25519, SigningKey, parse_note
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.messages.challenge import Challenge, Response
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.command.cli import app as prover_app
from ragaudit.prover.components import Components
from ragaudit.prover.index.stored import load_indexes
from ragaudit.prover.lifecycle.challenges import ChallengeWorker
from ragaudit.prover.service import Service
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store import tables
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.schema import SCHEMA as PROVER
from ragaudit.prover.store.states import State
from ragaudit.prover.window.records import record_at, records
from ragaudit.prover.window.windows import Windows
from ragaudit.verifier.command.cli import app as verifier_app
from ragaudit.verifier.engines import engine
from ragaudit.verifier.service import cosigner, windows
from ragaudit.verifier.service.database import Database, Origin
from ragaudit.verifier.service.schema import SCHEMA as VERIFIER
from ragaudit.verifier.settings import load
from sqlalchemy import select
from typer.testing import CliRunner

DUMPS = Path(__file__).parents[2] / "vectors/databases/0.1.0"


def run(app: Any, *arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def run_json(app: Any, *arguments: object) -> Any:
    # The log of `serve` above goes on in this process, before the document.
    return json.loads(run(app, *arguments, "--json").splitlines()[-1])


@pytest.fixture
def prover(tmp_path: Path) -> Path:
    """The settings of a prover whose database the first release made."""
    run(prover_app, "init", "--provider", "example.org", "--folder", tmp_path / "prover")
    (tmp_path / "prover/prover.db").unlink()
    load_dump(DUMPS / "prover.sql.gz", tmp_path / "prover/prover.db")
    return tmp_path / "prover/prover.yaml"


@pytest.fixture
def verifier(tmp_path: Path) -> Path:
    """The settings of a verifier whose database the first release made."""
    folder = tmp_path / "verifier"
    run(verifier_app, "init", "--name", "regulator.example/cosigner", "--directory", folder)
    (folder / "data/verifier.db").unlink()
    load_dump(DUMPS / "verifier.sql.gz", folder / "data/verifier.db")
    return folder / "verifier.yaml"


def test_a_prover_of_the_first_release(prover: Path) -> None:
    said = run(prover_app, "serve", "--settings", prover, code=2)
    assert "a back-up, then: ragaudit prover migrate" in said
    done = run_json(prover_app, "migrate", "--settings", prover)
    assert done == {"before": "0001", "after": PROVER.head}
    done = run_json(prover_app, "migrate", "--settings", prover)
    assert done == {"before": PROVER.head, "after": PROVER.head}
    with closing(Store.open(f"sqlite:///{prover.parent}/prover.db")) as store:
        window = Windows(store).get("small")
        assert window.state is State.CHALLENGED
        policy = Policy.parse(window.policy)
        key = SigningKey(policy.origin, ED25519, PrivateKey.from_seed(window.log_seed))
        log = LogStore.open(store.engine, key.verifier_key)
        with store.read() as connection:
            assert log.audit() == log.head()
            logged = list(records(connection, "small"))
            indexes = load_indexes(connection, "small")
        assert len(logged) == 22 and sorted(indexes) == ["garden", "kitchen"]
        assert {each.record.tenant for each in logged} == set(indexes)
        for index in indexes.values():
            assert index.rows.dtype == "int8" and index.columns == () and not index.second


@pytest.mark.slow
def test_the_challenge_of_a_first_releases_window_is_answered(prover: Path) -> None:
    """Beyond this nobody gets: the keys of that verifier were not kept, and sign no verdict."""
    run(prover_app, "migrate", "--settings", prover)
    service = Service(load_settings(prover), Components())
    with closing(service.store):
        live = service.open_windows.get("small")
        message = service.windows.get("small").challenge
        assert message is not None
        worker = ChallengeWorker(
            store=service.store,
            backend=service.backend,
            mechanism=service.mechanism,
            verifier=service.verifier,
            runner=service.runner,
        )
        positions = worker.check(live, Challenge.parse(message))
        assert len(positions) == 22
        with service.store.read() as connection:
            logged = [record_at(connection, "small", each) for each in positions]
        chosen = {each.record.tenant: each for each in logged if each is not None}
        worker.prepare(live, [each.position for each in chosen.values()])
        proven = {}
        with service.store.read() as connection:
            for tenant, each in chosen.items():
                place = tables.response.c.position == each.position
                response = Response.parse(
                    connection.scalars(select(tables.response.c.message).where(place)).one(),
                    live.policy.dimension,
                    version=1,
                    noised=True,
                )
                proven[tenant] = (worker.statement(live, each.record, each), response.proof)
    for name in ("core", "reference"):
        engine(name).verify_selections([*proven.values()])
    assert sorted(proven) == ["garden", "kitchen"]


def test_a_prover_that_is_served_is_not_upgraded(prover: Path) -> None:
    store = Store.create(f"sqlite:///{prover.parent}/other.db")
    prover.write_text(prover.read_text().replace("prover.db", "other.db"))
    lock = take_database(store.engine)
    said = run(prover_app, "migrate", "--settings", prover, code=4)
    assert "another process serves this database" in said
    lock.release()
    store.close()
    run(prover_app, "migrate", "--settings", prover)


def test_a_verifier_of_the_first_release(verifier: Path) -> None:
    said = run(verifier_app, "serve", "--settings", verifier, code=2)
    assert "a back-up, then: ragaudit verifier migrate" in said
    loaded = load(verifier)
    # That release's start made it; without it, nothing tells an older copy.
    loaded.fence_path.unlink(missing_ok=True)
    fence = loaded.fence_place.open()
    said = run(verifier_app, "migrate", "--settings", verifier, code=4)
    assert "another process holds the fence" in said
    fence.close()
    done = run_json(verifier_app, "migrate", "--settings", verifier)
    assert done == {"before": "0001", "after": VERIFIER.head}
    assert f"before: {VERIFIER.head}" in run(verifier_app, "migrate", "--settings", verifier)
    with closing(Database(loaded.database_url, lambda: 2**42)) as database:
        with database.read() as connection:
            origin = Origin(windows.resolve(connection, "small"))
            window = windows.get(connection, origin)
            assert window.challenged is not None and window.decided is None
            last = cosigner.last(connection, origin)
            assert last is not None and last.size == 28
            parse_note(last.note)
        with database.write() as transaction:
            assert transaction.now == 2**42


def test_an_upgrade_makes_no_fence(verifier: Path) -> None:
    """One that is missing is refused at the start: the upgrade must not make it look complete."""
    loaded = load(verifier)
    loaded.fence_path.unlink(missing_ok=True)
    run(verifier_app, "migrate", "--settings", verifier)
    assert not loaded.fence_path.exists()
    said = run(verifier_app, "serve", "--settings", verifier, code=4)
    assert "the fence is missing" in said


@pytest.mark.parametrize("party", ["prover", "verifier"])
def test_a_database_elsewhere_gets_its_tables_by_the_same_command(
    party: str, tmp_path: Path, empty_database: str
) -> None:
    app = prover_app if party == "prover" else verifier_app
    folder = "--folder" if party == "prover" else "--directory"
    name = ("--provider", "p.example") if party == "prover" else ("--name", "r.example/cosigner")
    run(app, "init", *name, folder, tmp_path / party)
    path = tmp_path / party / f"{party}.yaml"
    text = path.read_text().replace("sqlite:///prover.db", empty_database)
    path.write_text(text if party == "prover" else f"{text}\ndatabase: {empty_database}\n")
    said = run(app, "serve", "--settings", path, code=3)
    assert "no tables" in said and f"ragaudit {party} migrate" in said
    assert "no tables" in run(app, "migrate", "--settings", path)
    assert "no tables" not in run(app, "migrate", "--settings", path)
