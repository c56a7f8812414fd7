"""Key files: one per role, made by ``ragaudit prover init``, readable by their owner only."""

import os
from hashlib import sha256
from pathlib import Path

from ragaudit.encoding.errors import MalformedError, MalformedSettings
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import hex_decode, hex_encode
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.serving.settings import read_secret_file

__all__ = [
    "create_key",
    "load_digest",
    "load_key",
    "read_secret_file",
    "token_digest",
    "write_secret_file",
]

SECRET_MODE = 0o600


def write_secret_file(path: Path, text: str) -> None:
    """Create ``path`` with mode 0600 and a text; never replace a file.

    Args:
        path: of the new file; its folder is made with mode 700 if it is missing.
        text: the content but for its last line end.

    Raises:
        MalformedSettings: the file exists.
        StoreUnavailable: its folder cannot be written.
    """
    if path.exists():
        raise MalformedSettings(
            "a secret file exists already", where=str(path), expected="a new path"
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # O_EXCL and the mode at once: no moment in which others could open or replace it.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            # Durable before its first use: a lost key could not go on with what it has signed.
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write a secret file: {error.strerror}", where=str(path)
        ) from None


def create_key(path: Path) -> PrivateKey:
    """Generate an Ed25519 key and write its seed to ``path``; errors as `write_secret_file`."""
    key = PrivateKey.generate()
    write_secret_file(path, hex_encode(key.seed()))
    return key


def load_key(path: Path) -> PrivateKey:
    """Return the key of a file that `create_key` wrote.

    Args:
        path: of a file with 64 hexadecimal digits, the seed of an Ed25519 key.

    Raises:
        MalformedSettings: anything else, or a file that `read_secret_file` does not read.
    """
    try:
        return PrivateKey.from_seed(hex_decode(read_secret_file(path), 32))
    except MalformedSettings:
        raise
    except MalformedError as error:
        # The text of the file must not be quoted: it is a secret.
        raise MalformedSettings(
            "not a key file", where=str(path), expected="64 digits 0-9a-f"
        ) from error


def load_digest(path: Path) -> bytes:
    """Return the SHA-256 of a token from its file, 32 bytes.

    Args:
        path: of a file with 64 hexadecimal digits.

    Raises:
        MalformedSettings: anything else, or a file that `read_secret_file` does not read.
    """
    try:
        return hex_decode(read_secret_file(path), 32)
    except MalformedSettings:
        raise
    except MalformedError:
        raise MalformedSettings(
            "not a digest of a token", where=str(path), expected="64 digits 0-9a-f"
        ) from None


def token_digest(token: str) -> bytes:
    """Return the SHA-256 under which a bearer token or API key is stored, 32 bytes.

    Args:
        token: as the caller presents it, of any length and content.
    """
    # Unsalted and fast: tokens are 32 random bytes, which nobody guesses (spec 8.1).
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
