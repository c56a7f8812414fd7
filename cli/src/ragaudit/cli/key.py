"""`ragaudit key`: make key files, and show their public keys.

One format for every role and service: 32 bytes in hexadecimal on one line, mode 600.
"""

import json
import os
import stat
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.commands import failing
from ragaudit.encoding.errors import MalformedError, RefusedError, UnavailableError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_decode, hex_encode

app = typer.Typer(
    no_args_is_help=True,
    help="Ed25519 key files: make them, show their public keys.\n\n"
    "Example: ragaudit key make provider.key",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SEED_BYTES = 32


@app.command(epilog="Example: ragaudit key make keys/provider.key")
def make(
    file: Annotated[Path, typer.Argument(help="Where the private key goes; must not exist.")],
    as_json: AsJson = False,
) -> None:
    """Make a key pair, write the private key with mode 600, print the public key."""
    with failing(as_json):
        key = PrivateKey.generate()
        _write(file, key)
        _show({file: key.public}, as_json)


@app.command(epilog="Example: ragaudit key public prover/keys/*.key")
def public(
    files: Annotated[list[Path], typer.Argument(help="Files with private keys.")],
    as_json: AsJson = False,
) -> None:
    """Print the public keys of key files, in hexadecimal and as PEM."""
    with failing(as_json):
        _show({file: _read(file).public for file in files}, as_json)


def _write(file: Path, key: PrivateKey) -> None:
    try:
        # Never over an existing file: it may be the only copy of a key.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(hex_encode(key.seed()) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    except FileExistsError:
        raise RefusedError("the file exists", where=str(file), expected="a new path") from None
    except OSError as error:
        raise UnavailableError(f"cannot write: {error.strerror}", where=str(file)) from None


def _read(file: Path) -> PrivateKey:
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        text = file.read_text(encoding="ascii")
    except OSError as error:
        raise MalformedError(f"cannot read: {error.strerror}", where=str(file)) from None
    except UnicodeDecodeError:
        text, mode = "", 0o600
    if mode & 0o077:
        raise RefusedError("others may read the key", where=str(file), expected="mode 600")
    try:
        return PrivateKey.from_seed(hex_decode(text.strip(), SEED_BYTES))
    except MalformedError:
        # What it holds is not repeated: it may be a secret.
        raise MalformedError(
            "not a key file", where=str(file), expected="64 digits 0-9a-f"
        ) from None


def _show(keys: dict[Path, PublicKey], as_json: bool) -> None:
    if as_json:
        documents = [
            {"file": str(file), "public": hex_encode(key.raw), "pem": key.pem()}
            for file, key in keys.items()
        ]
        typer.echo(json.dumps(documents))
        return
    for file, key in keys.items():
        typer.echo(f"{file}: {hex_encode(key.raw)}\n{key.pem()}", nl=False)
