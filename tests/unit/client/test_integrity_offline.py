"""`ragaudit receipt check` of a window without noise, by files alone and with the real group."""

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from ragaudit.client import offline
from ragaudit.client.checks import Facts
from ragaudit.client.cli import app
from ragaudit.client.window import Pins, Window
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import RagauditError
from ragaudit.encoding.text import b64_encode
from ragaudit.lab.scenario.accounts import Asked
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.ledger.errors import ReceiptRejected
from ragaudit.ledger.messages.challenge import Activation, Countersignature
from ragaudit.ledger.messages.entries import Version
from ragaudit.ledger.messages.receipts import PublicReceipt, ReceiptFile
from ragaudit.ledger.messages.shown import ShownOpening, ShownWindow, VersionEntry
from typer.testing import CliRunner

UNDONE = {"inclusion", "body", "embedder"}  # of a file without proof and account


@lru_cache(maxsize=1)
def played() -> tuple[IntegrityWindow, ShownWindow]:
    window = IntegrityWindow()
    window.play()
    _, salt, body = window.entries[0]
    versions = [
        VersionEntry(index, salt, body, window.proof_for(index).encode().decode())
        for index, (kind, salt, body) in enumerate(window.entries)
        if kind == Version.KIND
    ]
    return window, ShownWindow(
        window=window.window,
        state="closed",
        policy=window.policy,
        policy_digest=window.policy.digest,
        countersignature=Countersignature.parse(window.countersignature()),
        opening=ShownOpening(salt, body),
        embedder=window.model.manifest(),
        activations=tuple(
            Activation.from_json(window.activation(a, size))
            for a, size in enumerate(window.covered_sizes(), start=1)
        ),
        versions=tuple(versions),
        epochs=() if window.policy.epochs else None,
    )


def shown(tmp_path: Path) -> Path:
    path = tmp_path / "window.json"
    path.write_bytes(played()[1].encode())
    return path


def opened(tmp_path: Path) -> Window:
    window, _ = played()
    return offline.read_window(shown(tmp_path), Pins(verifier=window.verifier_key.public))


def completed(asked: Asked) -> ReceiptFile:
    window, _ = played()
    file = window.receipt_file(asked)
    public = file.public.with_proofs(window.proof_for(asked.index))
    return ReceiptFile(file.request, file.answer, public, file.private)


def undone(file: ReceiptFile | dict[str, Any], window: Window) -> set[str]:
    value = file if isinstance(file, dict) else file.to_json()
    return {step.name for step in offline.check(value, window, Facts()).not_done}


@pytest.mark.parametrize("name", ["sentence-transformers", "openai-compatible", "unknown"])
def test_an_embedder_that_is_not_here_leaves_its_step_undone(tmp_path: Path, name: str) -> None:
    """A folder or an address is needed for it: a receipt is checked without."""
    window = opened(tmp_path)
    manifest = replace(window.shown.embedder, name=name)
    other = replace(window, shown=replace(window.shown, embedder=manifest))
    assert offline.load_embedder(other) is None


def test_every_receipt_of_the_window_passes(tmp_path: Path) -> None:
    window, _ = played()
    view = opened(tmp_path)
    assert [version.version for _, version in view.view.versions] == [2]
    for asked in window.asked:
        assert undone(window.receipt_file(asked), view) == UNDONE
        assert undone(completed(asked), view) == UNDONE - {"inclusion"}


def test_the_command_takes_files_of_version_2(tmp_path: Path) -> None:
    window, _ = played()
    tied = next(asked for asked in window.asked if len(asked.selected) > asked.record.top_k)
    file = tmp_path / "receipt.json"
    file.write_bytes(completed(tied).encode())
    key = window.verifier_key.public.raw.hex()
    command = ["check", str(file), "--window", str(shown(tmp_path)), "--verifier-key", key]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert (done.exit_code, json.loads(done.stdout)["result"]) == (0, "accepted"), done.output


def test_the_command_says_how_many_documents_were_withdrawn(tmp_path: Path) -> None:
    window, _ = played()
    key = window.verifier_key.public.raw.hex()
    counts = set()
    for asked in window.asked:
        file = tmp_path / "receipt.json"
        file.write_bytes(completed(asked).encode())
        command = ["check", str(file), "--window", str(shown(tmp_path)), "--verifier-key", key]
        found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["withdrawn"]
        # By the number of documents that the answer lacks.
        due = min(asked.record.top_k, len(asked.selected))
        assert found == due - len(completed(asked).answer.documents)
        said = CliRunner().invoke(app, command).output
        assert (f"{found} withdrawn" in said) == (found > 0)
        counts.add(found)
    assert len(counts) > 1


def signed_anew(value: dict[str, Any]) -> dict[str, Any]:
    """The file with parts as they are now, which the provider signs."""
    window, _ = played()
    halves = [canonical_json.dumps(value[name]) for name in ("request", "answer", "private")]
    public = PublicReceipt.from_json(value["public"])
    signed = PublicReceipt(origin=public.origin, index=public.index, salt=public.salt,
        body=public.body, issued=public.issued,
        answer_digest=structure("answer", bytes.fromhex(value["private"]["salt_r"]), *halves),
    ).signed(window.provider_key)  # fmt: skip
    return {**value, "public": signed.to_json()}


def test_a_tied_row_cannot_take_anothers_place(tmp_path: Path) -> None:
    window, _ = played()
    tied = next(asked for asked in window.asked if len(asked.selected) > asked.record.top_k)
    value = window.receipt_file(tied).to_json()
    ties = value["private"]["ties"]
    for proof in (bytes(32) * 13, b"\x01" + bytes(31)):
        forged = {**ties, "proof": b64_encode(proof)}
        changed = {**value, "private": {**value["private"], "ties": forged}}
        with pytest.raises(ReceiptRejected, match="step 8"):
            undone(signed_anew(changed), opened(tmp_path))
    without = {**value, "private": {**value["private"], "ties": None}}
    with pytest.raises(ReceiptRejected, match="step 7"):
        undone(signed_anew(without), opened(tmp_path))


def test_a_version_that_the_log_does_not_hold_is_none(tmp_path: Path) -> None:
    window, reply = played()
    later = next(asked for asked in window.asked if asked.record.version == 2)
    entry = reply.versions[0]
    for index in (entry.index + 1, 0):
        value = reply.to_json()
        value["versions"] = [{**value["versions"][0], "index": index}]
        path = tmp_path / "false.json"
        path.write_bytes(canonical_json.dumps(value))
        with pytest.raises(RagauditError, match=r"leaf|integer"):
            offline.read_window(path, Pins(verifier=window.verifier_key.public))
    value = reply.to_json()
    value["versions"] = []
    path = tmp_path / "old.json"
    path.write_bytes(canonical_json.dumps(value))
    old = offline.read_window(path, Pins(verifier=window.verifier_key.public))
    with pytest.raises(ReceiptRejected, match="version"):
        undone(window.receipt_file(later), old)
