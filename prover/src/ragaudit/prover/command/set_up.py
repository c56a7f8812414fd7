"""Before a prover serves: what ``ragaudit prover init`` makes."""

import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from ragaudit.encoding.errors import MalformedSettings
from ragaudit.encoding.settings import service_url
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.errors import StoreUnavailable
from ragaudit.prover.keys import (
    create_key,
    token_digest,
    write_secret_file,
)
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store.database import Store
from ragaudit.serving.settings import PROVIDER_PATTERN

TOKEN_BYTES = 32

_TEMPLATE = """\
# Settings of the ragaudit prover. Every member can be overridden in the environment, for example
# RAGAUDIT_PROVER__SERVER__PORT=8081. Paths are relative to this file. See docs/operations.md.
provider: {provider}

server:
  host: 127.0.0.1
  port: 8080

store:
  url: sqlite:///prover.db
  fence_folder: fences        # better on another disk; never restore it from a backup

keys:
  provider_file: keys/provider.key
  operator_digest_file: keys/operator.sha256

verifier:
  url: {verifier}
  # The keys that the regulator published (GET /v1/keys shows them). Pin them: otherwise nothing is
  # served, unless `allow_unpinned: true` trusts whichever server answers first at that URL.
  # cosigner_key: "regulator.example/cosigner+..."
  # verifier_key: "..."
  # verdict_key: "..."
  # arbiter_key: "..."        # if the regulator hears an arbiter

window:
  opens_after_seconds: 120
  length_seconds: 86400
  activation_every_seconds: 3600
  sampling_after_seconds: 3600
  epsilon_acc: "10"           # promised to an account at delta_acc; sigma follows unless given
  delta_acc: "0.000001"
  relation: null-replace
  top_k_max: 5
  queries_per_account: 50
  slots: 64
  coalition_max: 10
"""


@dataclass(frozen=True)
class SetUp:
    """What was made: the settings, the operator's token, and the provider's public key."""

    settings: Path
    operator_token: Path
    provider_key: PublicKey


def set_up(folder: Path, *, provider: str, verifier: str) -> SetUp:
    """Make settings, keys and an empty database; what exists already is never replaced.

    Args:
        provider: its name, as policies show it.
        verifier: URL of the verifier service.

    Raises:
        MalformedError: a bad name or URL, or a file that exists.
        StoreUnavailable: folder or database cannot be written.
    """
    if re.fullmatch(PROVIDER_PATTERN, provider, re.ASCII) is None:
        raise MalformedSettings(
            "not a provider name", where="provider", expected="1 to 64 of a-z, 0-9, . and -"
        )
    verifier = service_url(verifier, "verifier")
    path = folder / "prover.yaml"
    if path.exists():
        raise MalformedSettings(
            "settings exist already", where=str(path), expected="another folder"
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        provider_key = create_key(folder / "keys" / "provider.key").public
        token_file = folder / "keys" / "operator.token"
        token = secrets.token_urlsafe(TOKEN_BYTES)
        # The service keeps the digest only: who reads its settings cannot act as the operator.
        write_secret_file(token_file, token)
        write_secret_file(folder / "keys" / "operator.sha256", hex_encode(token_digest(token)))
        # It may come to hold a database's password.
        write_secret_file(path, _TEMPLATE.format(provider=provider, verifier=verifier).rstrip())
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write: {error.strerror}", where=str(folder), expected="a writable folder"
        ) from None
    Store.create(load_settings(path).store.url).close()
    return SetUp(path, token_file, provider_key)
