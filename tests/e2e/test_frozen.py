"""Evidence that earlier commits wrote still stands, and not with a byte changed (tests/frozen)."""

import hashlib
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ragaudit.cli.main import app
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PublicKey
from ragaudit.lab.demo.services import command
from ragaudit.ledger.messages.verdict import MalformedVerdict, Verdict, VerdictRejected
from ragaudit.verifier.bundle import open_bundle, write_bundle
from ragaudit.verifier.evidence import Evidence
from typer.testing import CliRunner

FROZEN = Path(__file__).parents[1] / "frozen"
VERSIONS = sorted(path.name for path in FROZEN.iterdir() if path.is_dir())
SUMS = {"0.1.0": "ed8670ab58b4d10d"}
"""The first 16 digits of the digest of each `SHA256SUMS`: what is frozen is not made again."""

ACCEPTED, REJECTED, MALFORMED, INCOMPLETE = 0, 1, 2, 5


@pytest.fixture(params=VERSIONS)
def frozen(request: pytest.FixtureRequest) -> Path:
    return FROZEN / str(request.param)


def keys(frozen: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((frozen / "keys.json").read_bytes())
    return found


def run(*words: str | Path) -> tuple[int, str]:
    """Exit code and output of `ragaudit` with these words, in this process."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.stdout + done.stderr


def recheck(frozen: Path, bundle: Path, *options: str) -> tuple[int, str]:
    return run("verifier", "recheck", bundle, "--verdict-key", keys(frozen)["verdict"], *options)


def check_receipt(frozen: Path, receipt: Path) -> tuple[int, Any]:
    files = [
        word
        for name in ("window", "policy", "account", "promise")
        for word in (f"--{name}", frozen / f"{name}.json")
    ]
    code, said = run("receipt", "check", receipt, *files, "--strict", "--json")
    return code, json.loads(said)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_every_version_is_what_was_frozen(frozen: Path) -> None:
    sums = (frozen / "SHA256SUMS").read_bytes()
    assert hashlib.sha256(sums).hexdigest().startswith(SUMS[frozen.name])
    pairs = [line.split("  ") for line in sums.decode().splitlines()]
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in frozen.iterdir()
        if path.name != "SHA256SUMS"
    }
    assert found == {name: digest for digest, name in pairs}


def test_the_verdict_stands(frozen: Path) -> None:
    code, said = recheck(frozen, frozen / "bundle.zip", "--require", "all")
    assert code == ACCEPTED, said
    assert said.startswith("the verdict stands: PASS, integrity PASS, privacy PASS (")
    assert "reads otherwise" not in said


def test_the_reference_verifier_agrees(frozen: Path) -> None:
    words = ("verifier", "recheck", frozen / "bundle.zip", "--verdict-key", keys(frozen)["verdict"])
    line = command(*map(str, words), "--engine", "reference", "--records", "1")
    # As a process: this one command is the installed one, its exit code the system's.
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == INCOMPLETE, done.stderr
    assert done.stdout.startswith("nothing differs, but not everything was repeated: ")


def test_the_public_part_stands_alone(frozen: Path) -> None:
    code, said = recheck(frozen, frozen / "bundle-public.zip")
    assert code == INCOMPLETE, said
    assert said.startswith("nothing differs, but not everything was repeated: 9 of 22 checks")


def test_the_signed_verdict_is_the_bundle_s(frozen: Path) -> None:
    verdict = (frozen / "verdict.json").read_bytes()
    public = PublicKey.from_raw(bytes.fromhex(keys(frozen)["verdict"]))
    assert Verdict.verify(verdict, public).result == "PASS"
    for name in ("bundle.zip", "bundle-public.zip"):
        assert zipfile.Path(frozen / name, "verdict.json").read_bytes() == verdict


def test_the_receipt_passes_every_check(frozen: Path) -> None:
    code, said = check_receipt(frozen, frozen / "receipt.json")
    assert code == ACCEPTED, said
    assert {each["status"] for each in said["checks"]} == {"done"}


# --- with a byte changed ----------------------------------------------------------------------


def test_a_byte_of_the_bundle(frozen: Path, tmp_path: Path) -> None:
    data = (frozen / "bundle.zip").read_bytes()
    changed = tmp_path / "bundle.zip"
    for at in range(100, len(data), len(data) // 2):
        changed.write_bytes(flipped(data, at))
        code, said = recheck(frozen, changed)
        assert code == MALFORMED, (at, said)


@pytest.mark.parametrize("item", ["public/leaves.bin", "confidential/records.bin"])
def test_a_byte_of_an_item_with_a_manifest_to_match(
    frozen: Path, tmp_path: Path, item: str
) -> None:
    changed = tmp_path / "bundle.zip"
    with open_bundle(frozen / "bundle.zip") as bundle:
        items = {name: bundle.evidence[name] for name in bundle.evidence}
        items[item] = flipped(items[item], len(items[item]) - 1)
        write_bundle(changed, Evidence.of(items), bundle.verdict, part="all")
    code, said = recheck(frozen, changed)
    assert code == REJECTED, said
    assert said.startswith(f"THE VERDICT DOES NOT STAND: {item} is not the item")


def test_a_byte_of_the_verdict(frozen: Path, tmp_path: Path) -> None:
    verdict = (frozen / "verdict.json").read_bytes()
    public = PublicKey.from_raw(bytes.fromhex(keys(frozen)["verdict"]))
    for at in range(0, len(verdict), 1009):
        with pytest.raises((MalformedVerdict, VerdictRejected)):
            Verdict.verify(flipped(verdict, at), public)
    at = verdict.index(b'"sig":"') + 10
    changed = tmp_path / "bundle.zip"
    with open_bundle(frozen / "bundle.zip") as bundle:
        write_bundle(changed, bundle.evidence, flipped(verdict, at), part="all")
    code, said = recheck(frozen, changed)
    assert code == REJECTED, said


def test_another_key(frozen: Path) -> None:
    other = keys(frozen)["verifier"]
    code, said = run("verifier", "recheck", frozen / "bundle.zip", "--verdict-key", other)
    assert code == REJECTED, said


@pytest.mark.parametrize(
    ("path", "step"),
    [
        (("public", "signature"), "step 1"),
        (("public", "proof"), "step 2"),
        (("answer", "documents", 0, "content"), "step 4"),
        (("private", "salt_q"), "step 4"),
    ],
)
def test_a_byte_of_the_receipt(
    frozen: Path, tmp_path: Path, path: tuple[str | int, ...], step: str
) -> None:
    receipt = json.loads((frozen / "receipt.json").read_bytes())
    *parents, last = path
    target = receipt
    for name in parents:
        target = target[name]
    text = target[last]
    at = text.index("\n", 30) + 3 if "\n" in text else 3
    target[last] = text[:at] + ("1" if text[at] == "0" else "0") + text[at + 1 :]
    changed = tmp_path / "receipt.json"
    changed.write_bytes(canonical_json.dumps(receipt))
    code, said = check_receipt(frozen, changed)
    assert code == REJECTED, said
    assert step in said["error"]
