"""The verifier's secrets: files of mode 0600 in one folder, read once at the start.

``cosigner.key``, ``verifier.key``, ``verdict.key`` and ``activation.key`` hold 32 bytes in
hexadecimal each; ``auditor-token.sha256`` the digest of the auditor's token. The token itself is
in ``auditor-token`` when it was made here; the service never reads that file.
"""

import hashlib
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.log.notes import COSIGNATURE_V1, MlDsaPrivateKey, SigningKey, VerifierKey
from ragaudit.ledger.messages.shown import ShownKeys

COSIGNER, VERIFIER, VERDICT = "cosigner.key", "verifier.key", "verdict.key"
ACTIVATION = "activation.key"
TOKEN, TOKEN_DIGEST = "auditor-token", "auditor-token.sha256"
PRIVATE_MODE = 0o600
SECRET_BYTES = 32


@dataclass(frozen=True)
class VerifierKeys:
    """One key per role.

    Args:
        cosigner: cosigns checkpoints (C2SP, type 0x04).
        statement: signs what the policy's ``keys.verifier`` verifies (docs/spec 8.4).
        verdict: signs verdicts (DSSE).
        activation: 32 bytes from which the seeds of the activation chains are derived.
        token_digest: SHA-256 of the auditor's token.
        arbiter: public key of the arbiter that this verifier hears; None if it hears none.
    """

    cosigner: SigningKey
    statement: PrivateKey
    verdict: PrivateKey
    activation: bytes = field(repr=False)
    token_digest: bytes = field(repr=False)
    arbiter: PublicKey | None = None

    def shown(self, time: int) -> ShownKeys:
        """Return the name and the public keys, as `GET /v1/keys` shows them.

        Args:
            time: the verifier's clock, Unix milliseconds.
        """
        return ShownKeys(
            arbiter=self.arbiter,
            name=self.cosigner.name,
            cosigner=self.cosigner.verifier_key,
            verifier=self.statement.public,
            verdict=self.verdict.public,
            time=time,
        )

    def public(self) -> dict[str, str | None]:
        """Return name and public keys, as the policy of a window names them."""
        value = self.shown(0).to_json()
        return {name: text for name, text in value.items() if name != "time"}


def create(folder: Path, name: str) -> VerifierKeys:
    """Write fresh secrets into ``folder``; nothing that exists is overwritten.

    Args:
        folder: where the service looks for them.
        name: of the cosigner's key, a schema-less URL.

    Raises:
        MalformedError: ``name`` is not a key name.
        RefusedError: one of the files exists.
    """
    generated = {file: PrivateKey.generate() for file in (COSIGNER, VERIFIER, VERDICT)}
    VerifierKey(name, COSIGNATURE_V1, generated[COSIGNER].public)  # checks the name
    token = secrets.token_urlsafe(SECRET_BYTES)
    contents = {file: key.seed().hex() for file, key in generated.items()}
    contents[ACTIVATION] = secrets.token_bytes(SECRET_BYTES).hex()
    contents[TOKEN_DIGEST] = token_digest(token).hex()
    contents[TOKEN] = token
    existing = [file for file in contents if (folder / file).exists()]
    if existing:
        raise RefusedError("secrets exist", where=str(folder), expected=f"no {existing[0]}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file, text in contents.items():
        _write(folder / file, text + "\n")
    _sync_folder(folder)
    return load(folder, name)


def load(folder: Path, name: str, arbiter: PublicKey | None = None) -> VerifierKeys:
    """Return the secrets that the service needs.

    Args:
        folder: as :func:`create` filled it.
        name: of the cosigner's key.
        arbiter: of the settings; the arbiter's secret key is nowhere near the verifier.

    Raises:
        MalformedError: a file is missing, holds something else, or is open to others.
    """
    return VerifierKeys(
        cosigner=SigningKey(
            name, COSIGNATURE_V1, PrivateKey.from_seed(read_seed(folder / COSIGNER))
        ),
        statement=PrivateKey.from_seed(read_seed(folder / VERIFIER)),
        verdict=PrivateKey.from_seed(read_seed(folder / VERDICT)),
        activation=read_seed(folder / ACTIVATION),
        token_digest=read_seed(folder / TOKEN_DIGEST),  # 32 bytes in hexadecimal, like a seed
        arbiter=arbiter,
    )


def read_seed(path: Path) -> bytes:
    """Return the 32 bytes of a key file.

    Raises:
        MalformedError: as for :func:`load`.
    """
    try:
        return hex_decode(read_token(path), SECRET_BYTES)
    except MalformedError as error:
        # Never the content: the message may end up in a log.
        raise MalformedError(error.what, where=str(path), expected=error.expected) from None


def write_seed(path: Path, key: PrivateKey | MlDsaPrivateKey) -> None:
    """Write a key file of mode 0600.

    Args:
        path: the file; its folder is made with mode 0700 where there is none.
        key: whose seed is written, in hexadecimal.

    Raises:
        RefusedError: the file exists.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        _write(path, key.seed().hex() + "\n")
    except FileExistsError:
        raise RefusedError("a key exists", where=str(path), expected="no such file") from None
    _sync_folder(path.parent)


def read_token(path: Path) -> str:
    """Return the text of a secret file, such as the auditor's token.

    Raises:
        MalformedError: no such file, or others can read it.
    """
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise MalformedError("secret cannot be read", where=str(path)) from None
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise MalformedError("secret open to others", where=str(path), expected="mode 0600")
    return text.removesuffix("\n")


def token_digest(token: str) -> bytes:
    """Return what the service keeps of a token: its SHA-256."""
    return hashlib.sha256(token.encode("utf-8")).digest()


def _write(path: Path, text: str) -> None:
    # O_EXCL: a link that somebody put there is not followed, and no secret is overwritten.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    # A policy may soon name the key: a power cut must not take the file's name from the folder.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
