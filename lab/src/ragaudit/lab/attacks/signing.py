"""Who signs a test's result, and which audited window it is about."""

from pathlib import Path

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.policy import Policy
from ragaudit.serving.settings import read_secret_file


def signer_of(path: Path) -> PrivateKey:
    """Return the key in a file of `ragaudit key`.

    Raises:
        MalformedError: not such a file; never with its content.
    """
    try:
        return PrivateKey.from_seed(hex_decode(read_secret_file(path), 32))
    except MalformedError as error:
        raise MalformedError(error.what, where=f"--sign-key {path}") from None


def policy_bytes(path: Path) -> bytes:
    """Return a window's policy as its evidence holds it.

    Args:
        path: of the policy in canonical JSON, as `public/policy.json` of a bundle.

    Raises:
        MalformedError: not a policy.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MalformedError("cannot be read", where=f"--policy {path}") from error
    try:
        return Policy.parse(data).canonical
    except MalformedError as error:
        where = f"--policy {path}: {error.where}"
        raise MalformedError(error.what, where=where, expected=error.expected) from error
