"""`ragaudit receipt complete --again`: a proof gives way to one with more cosignatures only."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client import transport
from ragaudit.client.blocking import Client
from ragaudit.client.cli import app
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.receipts import ReceiptFile
from typer.testing import CliRunner

FURTHER = SigningKey("further.example", COSIGNATURE_V1, PrivateKey.from_seed(b"\x51" * 32))


@pytest.fixture(autouse=True)
def network(provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = httpx.AsyncClient

    def mocked(**arguments: Any) -> httpx.AsyncClient:
        mock = httpx.MockTransport(provider.handle)
        return real(**{**arguments, "transport": mock})

    monkeypatch.setattr(transport.httpx, "AsyncClient", mocked)  # type: ignore[attr-defined]


def lines(path: Path) -> list[str]:
    proof = ReceiptFile.parse(path.read_bytes()).public.proof
    note = parse_checkpoint(TlogProof.parse(str(proof).encode()).checkpoint).note
    return [line.name for line in note.signatures]


def complete(path: Path, *options: str) -> int:
    words = ["complete", str(path), "--prover", "http://provider", "--allow-unpinned", "--json"]
    result = CliRunner().invoke(app, [*words, *options])
    return int(json.loads(result.stdout)["completed"])


def test_more_cosignatures_replace_fewer_and_never_the_other_way(
    opened: Callable[..., Client], provider: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(anchored=False) as client:
        file = client.search("what is it?").receipt.file
    path = tmp_path / "answer.json"
    path.write_bytes(file.encode())
    assert complete(path) == 1
    before = path.read_bytes()
    assert complete(path) == complete(path, "--again") == 0
    plain = provider.proof

    def cosigned(index: int) -> str:
        proof = TlogProof.parse(plain(index).encode())
        note = parse_checkpoint(proof.checkpoint).note
        more = note.with_signatures([cosign(note.text, FURTHER, 1_800_000_000)])
        return TlogProof(proof.index, proof.path, more.encode()).encode().decode()

    monkeypatch.setattr(provider, "proof", cosigned)
    assert complete(path) == 0
    assert path.read_bytes() == before
    assert complete(path, "--again") == 1
    assert lines(path)[-1] == FURTHER.name
    monkeypatch.setattr(provider, "proof", plain)
    assert complete(path, "--again") == 0
    assert lines(path)[-1] == FURTHER.name
