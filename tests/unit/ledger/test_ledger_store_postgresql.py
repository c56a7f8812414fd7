"""The stored log on PostgreSQL: only the URL differs.

Runs when RAGAUDIT_TEST_POSTGRESQL holds the URL of an empty database, for example
postgresql+psycopg://user@localhost/test, and its driver is installed.
"""

import hashlib
import os
import threading

import pytest
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger import schema
from ragaudit.ledger.checkpoint_store import CheckpointStore
from ragaudit.ledger.cosignatures import CosignerPolicy, cosign
from ragaudit.ledger.database import open_engine, read_transaction
from ragaudit.ledger.errors import CorruptLog, LogFrozen, StoreUnavailable
from ragaudit.ledger.notes import COSIGNATURE_V1, ED25519, SigningKey
from ragaudit.ledger.store import LogStore
from ragaudit.ledger.tlog_proof import verify_tlog_proof
from ragaudit.ledger.tree import MemoryTree, leaf_hash
from sqlalchemy import text

URL = os.environ.get("RAGAUDIT_TEST_POSTGRESQL", "")
pytestmark = pytest.mark.skipif(not URL, reason="RAGAUDIT_TEST_POSTGRESQL is not set")

KEY = SigningKey("provider.example/ragaudit/w1", ED25519, PrivateKey.from_seed(b"\x01" * 32))
COSIGNER = SigningKey("cosigner.example/1", COSIGNATURE_V1, PrivateKey.from_seed(b"\x02" * 32))
COSIGNERS = CosignerPolicy((COSIGNER.verifier_key,), 1)


def leaves(count, start=0):
    return [hashlib.sha256(b"leaf %d" % i).digest() for i in range(start, start + count)]


def fill(store, count):
    with store.transaction() as connection:
        return store.extend(connection, leaves(count, store.head(connection).size))


@pytest.fixture
def engine():
    engine = open_engine(URL)
    with engine.begin() as connection:
        schema.metadata.drop_all(connection)
    yield engine
    with engine.begin() as connection:
        schema.metadata.drop_all(connection)
    engine.dispose()


@pytest.fixture
def store(engine):
    return LogStore.create(engine, KEY.verifier_key)


def test_append_prove_sign_and_cosign(store):
    for count in (1, 254, 1, 1, 300):
        fill(store, count)
    tree = MemoryTree(leaves(557))
    assert store.audit() == tree.head()
    assert store.inclusion_proof(256, 557) == tree.inclusion_proof(256)
    assert store.consistency_proof(255, 557) == tree.consistency_proof(255)
    checkpoints = CheckpointStore(store, COSIGNERS)
    signed = checkpoints.sign(KEY)
    assert checkpoints.sign(KEY) == signed
    checkpoints.add_cosignatures(557, [cosign(signed.checkpoint.text, COSIGNER, 5)])
    verify_tlog_proof(
        checkpoints.tlog_proof(300),
        leaf=leaf_hash(leaves(1, 300)[0]),
        log_key=KEY.verifier_key,
        cosigners=COSIGNERS,
    )
    assert LogStore.open(store.engine, KEY.verifier_key).head() == tree.head()


def test_a_rollback_gives_the_index_again(store):
    fill(store, 3)
    with pytest.raises(RuntimeError), store.transaction() as connection:
        assert store.append(connection, bytes(32)) == 3
        raise RuntimeError
    assert fill(store, 1) == 3
    assert store.audit() == MemoryTree(leaves(4)).head()


def test_writers_of_two_processes_take_turns(store):
    other = LogStore.open(open_engine(URL), KEY.verifier_key)
    taken = []

    def work(log):
        for _ in range(15):
            with log.transaction() as connection:
                taken.append(log.append(connection, bytes(32)))

    threads = [threading.Thread(target=work, args=(log,)) for log in (store, other, store, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.engine.dispose()
    assert sorted(taken) == list(range(60))
    assert store.audit().size == 60


def test_freezing_and_damage(engine, store):
    fill(store, 10)
    with store.transaction() as connection:
        store.freeze(connection)
    with pytest.raises(LogFrozen):
        fill(store, 1)
    with engine.begin() as connection:
        connection.execute(text("UPDATE ledger_entry SET leaf_data = ''::bytea WHERE position = 9"))
    with pytest.raises(CorruptLog):
        LogStore.open(engine, KEY.verifier_key)


def test_commits_are_synchronised_whatever_the_default(store):
    with store.transaction() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
    with read_transaction(store.engine) as connection:
        isolation = connection.execute(text("SHOW transaction_isolation")).scalar_one()
    assert isolation == "repeatable read"


def test_a_lost_server_is_unavailable():
    engine = open_engine(URL.split("@", maxsplit=1)[0] + "@localhost:1/nowhere")
    with pytest.raises(StoreUnavailable):
        LogStore.create(engine, KEY.verifier_key)
