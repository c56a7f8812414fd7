"""`ragaudit key`: files for every role, public keys in both spellings, no secret shown."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from ragaudit.cli.key import app
from ragaudit.encoding.commands import ExitCode
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.prover.keys import load_key
from typer.testing import CliRunner

# RFC 8032, 7.1, test 1.
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def run(*arguments: str | Path, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result


def test_a_made_key_is_private_and_read_by_the_services(tmp_path: Path) -> None:
    file = tmp_path / "provider.key"
    (shown,) = json.loads(run("make", file, "--json").stdout)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_key(file).public.raw.hex() == shown["public"]
    assert file.read_text().strip() not in json.dumps(shown)
    refused = run("make", file, code=ExitCode.REFUSED)
    assert "exists" in refused.stderr
    run("make", tmp_path / "none" / "key", code=ExitCode.UNAVAILABLE)


def test_a_public_half_is_shown_as_hex_and_pem(tmp_path: Path) -> None:
    file = tmp_path / "k"
    file.write_text(SEED + "\n")
    file.chmod(0o600)
    text = run("public", file).stdout
    assert f"{file}: {PUBLIC}\n-----BEGIN PUBLIC KEY-----\n" in text and SEED not in text
    found = load_pem_public_key(PrivateKey.from_seed(bytes.fromhex(SEED)).public.pem().encode())
    assert isinstance(found, Ed25519PublicKey)
    assert found.public_bytes(Encoding.Raw, PublicFormat.Raw).hex() == PUBLIC
    assert PublicKey.from_raw(bytes.fromhex(PUBLIC)).pem() in text


@pytest.mark.parametrize("text", ["", "zz" * 32, SEED + "00", "\u00e9"])
def test_what_is_no_key_file_is_not_repeated(tmp_path: Path, text: str) -> None:
    file = tmp_path / "k"
    file.write_text(text)
    file.chmod(0o600)
    refused = run("public", file, code=ExitCode.BAD_INPUT)
    assert "not a key file" in refused.stderr and (not text or text not in refused.stderr)


def test_missing_files_and_open_ones(tmp_path: Path) -> None:
    run("public", tmp_path / "none", code=ExitCode.BAD_INPUT)
    (tmp_path / "open").write_text(SEED)
    (tmp_path / "open").chmod(0o644)
    run("public", tmp_path / "open", code=ExitCode.REFUSED)
