"""The witness of transparency-dev cosigns our log over HTTP, and holds it to one history."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from ledger_logs import COSIGNER, COSIGNERS, KEY, fill
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import SignedCheckpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest, parse_conflict
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.notes import SigningKey
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.prover.settings import CosignerSettings
from ragaudit.prover.verifier.cosigners import AskedLog, Cosigners

pytestmark = [pytest.mark.strangers, pytest.mark.timeout(900)]

NAME = "witness.example/theirs"


class Log:
    """A log of ours, and the policy that names their cosigner."""

    def __init__(self, path: Path, policy: TrustPolicy, key: SigningKey = KEY) -> None:
        self.engine = open_engine(f"sqlite:///{path}")
        self.key = key
        self.store = LogStore.create(self.engine, key.verifier_key)
        self.checkpoints = CheckpointStore(self.store, COSIGNERS, policy)

    def grow(self, count: int) -> SignedCheckpoint:
        """Append, sign, and have our own verifier's cosigner sign."""
        fill(self.store, count)
        signed = self.checkpoints.sign(self.key)
        line = cosign(signed.note.text, COSIGNER, 1_800_000_000)
        return self.checkpoints.add_cosignatures(signed.head.size, [line])

    def ask(self, client: Cosigners, signed: SignedCheckpoint) -> set[str]:
        """Ask their cosigner; the names of those who cosigned, as our policy judges them."""
        client.ask(AskedLog(self.store, self.checkpoints), signed)
        client.wait()
        found = self.checkpoints.finding(self.checkpoints.at(signed.head.size))
        assert found is not None
        return set(found.cosignatures)


@pytest.fixture
def policy(programs: Path) -> Iterator[TrustPolicy]:
    """Names their cosigner, which runs meanwhile."""
    task = json.dumps({"Name": NAME, "Vkey": str(KEY.verifier_key)})
    with subprocess.Popen(
        [programs / "cosigner"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{task}\n")
        process.stdin.flush()
        told = json.loads(process.stdout.readline())
        lines = [f"witness theirs {told['Vkey']} {told['Url']}", "quorum theirs", ""]
        yield TrustPolicy.parse("\n".join(lines).encode())
        process.stdin.close()


@pytest.fixture
def client(policy: TrustPolicy) -> Iterator[Cosigners]:
    made = Cosigners(policy, CosignerSettings())
    yield made
    made.close()


def test_it_follows_a_log_of_ours(client: Cosigners, policy: TrustPolicy, tmp_path: Path) -> None:
    log = Log(tmp_path / "log.db", policy)
    for count in (1, 1, 300, 70_000):
        signed = log.grow(count)
        assert log.ask(client, signed) == {"theirs"}
        assert client.failures(KEY.name) == {}
    reached = log.checkpoints.latest(quorum=True)
    assert reached is not None and reached.head == log.store.head()


def test_it_tells_a_prover_that_forgot_how_far_it_is(
    client: Cosigners, policy: TrustPolicy, tmp_path: Path
) -> None:
    log = Log(tmp_path / "log.db", policy)
    log.ask(client, log.grow(300))
    started_anew = Cosigners(policy, CosignerSettings())
    try:
        assert log.ask(started_anew, log.grow(57)) == {"theirs"}
    finally:
        started_anew.close()


def test_it_cosigns_no_other_history(
    client: Cosigners, policy: TrustPolicy, tmp_path: Path
) -> None:
    log, fork = Log(tmp_path / "log.db", policy), Log(tmp_path / "fork.db", policy)
    log.ask(client, log.grow(300))
    with fork.store.transaction() as connection:
        fork.store.extend(connection, [b"f" * 32])
    assert fork.ask(client, fork.grow(300)) == set()
    assert "theirs" in client.failures(KEY.name)
    assert log.ask(client, log.grow(1)) == {"theirs"}


def test_it_answers_by_the_status_table(policy: TrustPolicy, tmp_path: Path) -> None:
    log = Log(tmp_path / "log.db", policy)
    (cosigner,) = policy.cosigners
    first, signed = log.grow(5), log.grow(5)

    def post(old: int, proof: tuple[bytes, ...], note: SignedCheckpoint) -> httpx.Response:
        body = AddCheckpointRequest(old, proof, note.encode()).encode()
        return httpx.post(f"{cosigner.url}/add-checkpoint", content=body, trust_env=False)

    assert post(0, (), first).status_code == 200
    stale = post(0, (), signed)
    assert (stale.status_code, parse_conflict(stale.content)) == (409, 5)
    assert post(5, (b"x" * 32,), signed).status_code == 422
    assert post(5, log.store.consistency_proof(5, 10), signed).status_code == 200
    another = SigningKey("provider.example/ragaudit/w2", KEY.algorithm, PrivateKey.generate())
    unknown = Log(tmp_path / "other.db", policy, another)
    assert post(0, (), unknown.grow(1)).status_code == 404
