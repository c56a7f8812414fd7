"""Proofs of counts from a whole window's bundle to the one who reads them, by command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from procedure_cases import use_cached_table
from ragaudit.client.cli import app as client
from ragaudit.encoding.canonical_json import dumps
from ragaudit.lab.attacks.cheats.owned import CountsARecordLess
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.lab.scenario.owned import IndexedWindow
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.receipts import PublicReceipt
from ragaudit.verifier.bundle import Part, write_bundle
from ragaudit.verifier.command.cli import app as verifier
from ragaudit.verifier.evidence import Evidence
from typer.testing import CliRunner

use_cached_table()

RUNNER = CliRunner()


def bundled(window: Window, folder: Path, part: Part = "all") -> Path:
    """A bundle of the window, without a verdict: nobody here reads one."""
    evidence = Evidence.of(window.items())
    path = folder / f"{type(window).__name__}-{part}.zip"
    write_bundle(path, evidence, b"{}", part=part)
    return path


@pytest.fixture(scope="module")
def window() -> IndexedWindow:
    return IndexedWindow()


@pytest.fixture(scope="module")
def folder(window: IndexedWindow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made: Path = tmp_path_factory.mktemp("counts")
    bundled(window, made).rename(made / "all.zip")
    (made / "policy.json").write_bytes(window.policy.canonical + b"\n")
    yield made


def proven(folder: Path, pseudonym: bytes, bundle: str = "all.zip") -> tuple[int, str]:
    arguments = [str(folder / bundle), pseudonym.hex(), "-o", str(folder / "count.json")]
    done = RUNNER.invoke(verifier, ["prove-count", *arguments])
    return done.exit_code, done.output


def verified(folder: Path, *options: str) -> tuple[int, str]:
    arguments = [str(folder / "count.json"), "--policy", str(folder / "policy.json"), *options]
    done = RUNNER.invoke(client, ["verify-count", *arguments])
    return done.exit_code, done.output


def receipt(window: IndexedWindow, folder: Path, number: int, **changes: Any) -> str:
    """Write the public part of a record's receipt."""
    public = window.receipt_file(window.asked[number]).public
    if changes:
        names = ("origin", "index", "salt", "body", "issued", "answer_digest")
        fields = {name: getattr(public, name) for name in names}
        public = PublicReceipt(**{**fields, **changes}).signed(window.provider_key)
    path = folder / f"receipt-{number}.json"
    path.write_bytes(dumps(public.to_json()))
    return str(path)


def of(window: IndexedWindow, name: str) -> list[int]:
    """Numbers of an account's records among those of the window."""
    return [i for i, asked in enumerate(window.asked) if asked.account.name == name]


def test_a_count_goes_from_the_bundle_to_the_account(window: IndexedWindow, folder: Path) -> None:
    pseudonym = window.accounts["bob"].pseudonym
    mine = of(window, "bob")
    assert proven(folder, pseudonym) == (0, f"{pseudonym.hex()}: {len(mine)} records\n")
    receipts = [receipt(window, folder, number) for number in mine]
    options = [option for path in receipts for option in ("--receipt", path)]
    code, output = verified(folder, *options, "--json")
    listed = [window.asked[number].index for number in mine]
    assert (code, json.loads(output)["records"]) == (0, listed)
    assert f"has exactly {len(mine)} records" in verified(folder)[1]


def test_a_receipt_that_is_not_counted_contradicts_the_proof(
    window: IndexedWindow, folder: Path
) -> None:
    proven(folder, window.accounts["bob"].pseudonym)
    number = of(window, "bob")[0]
    path = receipt(window, folder, number, index=window.asked[of(window, "alice")[0]].index)
    code, output = verified(folder, "--receipt", path)
    assert (code, "is not counted" in output) == (1, True)


def test_a_receipt_that_accuses_nobody_is_not_held_against_the_proof(
    window: IndexedWindow, folder: Path
) -> None:
    proven(folder, window.accounts["bob"].pseudonym)
    alices = receipt(window, folder, of(window, "alice")[0])
    assert verified(folder, "--receipt", alices)[0] == 2
    forged = Path(receipt(window, folder, of(window, "bob")[0]))
    forged.write_bytes(dumps({**json.loads(forged.read_bytes()), "index": 1}))
    code, output = verified(folder, "--receipt", str(forged))
    assert (code, "signature" in output) == (1, True)


def test_an_account_that_is_not_there_is_proven_absent(window: IndexedWindow, folder: Path) -> None:
    assert proven(folder, b"\x07" * 32)[1].endswith(": not registered\n")
    code, output = verified(folder)
    assert (code, "was not registered" in output) == (0, True)
    bobs = receipt(window, folder, of(window, "bob")[0])
    assert verified(folder, "--receipt", bobs)[0] == 2


def test_a_proof_for_another_window_is_false(window: IndexedWindow, folder: Path) -> None:
    proven(folder, window.accounts["bob"].pseudonym)
    other = IndexedWindow(seed=2)
    (folder / "other.json").write_bytes(other.policy.canonical + b"\n")
    arguments = [str(folder / "count.json"), "--policy", str(folder / "other.json")]
    assert RUNNER.invoke(client, ["verify-count", *arguments]).exit_code == 1


def test_only_a_whole_bundle_with_a_true_index_proves(window: IndexedWindow, folder: Path) -> None:
    bundled(window, folder, "public").rename(folder / "public.zip")
    code, output = proven(folder, bytes(32), "public.zip")
    assert (code, "confidential" in output) == (4, True)
    bundled(IntegrityWindow(), folder).rename(folder / "none.zip")
    code, output = proven(folder, bytes(32), "none.zip")
    assert (code, "no account index" in output) == (4, True)
    bundled(CountsARecordLess(), folder).rename(folder / "false.zip")
    code, output = proven(folder, bytes(32), "false.zip")
    assert (code, "no such account index" in output) == (1, True)
    assert proven(folder, bytes(32), "away.zip")[0] == 2
