"""Settings of the cosigner: one YAML file, overridden by environment variables.

``RAGAUDIT_COSIGNER__LISTEN__PORT=8443`` overrides ``listen.port``. Keys are files in the folder
``secrets``: ``ed25519.key`` and ``ml-dsa-44.key``, 32 bytes in hexadecimal each.
"""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.log.notes import COSIGNATURE_V1, MLDSA_COSIGNATURE, MlDsaPrivateKey, SigningKey
from ragaudit.serving.settings import beside
from ragaudit.verifier import keys as key_files
from ragaudit.verifier.settings import Listen as VerifierListen
from ragaudit.verifier.settings import StoreSettings

Algorithm = Literal["ed25519", "ml-dsa-44"]
ED25519: Algorithm = "ed25519"
ML_DSA_44: Algorithm = "ml-dsa-44"


class Listen(VerifierListen):
    """Where the service listens; TLS ends here if both files are given.

    Attributes:
        port: port on which it listens.
    """

    port: int = Field(default=8744, ge=0, le=65535)


class Settings(StoreSettings):
    """All settings of the service.

    Attributes:
        name: name of the cosigner's keys, a schema-less URL such as ``cosigner.example/one``.
        data: the folder of the database.
        secrets: folder of ``ed25519.key`` and ``ml-dsa-44.key``.
        algorithms: the algorithms of its keys; every checkpoint is cosigned with a key of each.
        database_wait_seconds: how long a service that starts waits for a server to answer.
        listen: where the service listens.
    """

    model_config = SettingsConfigDict(env_prefix="RAGAUDIT_COSIGNER__")
    service: ClassVar[str] = "COSIGNER"

    algorithms: tuple[Algorithm, ...] = Field(default=(ED25519,), min_length=1, max_length=2)
    listen: Listen = Listen()


def load(path: Path) -> Settings:
    """Return the settings of a YAML file and the environment, with absolute paths.

    Raises:
        MalformedSettings, MalformedError: as `FileSettings.read`.
    """
    folder = path.resolve().parent
    read = beside(folder, Settings.read(path), "data", "secrets", "fence")
    return read.model_copy(update={"operation": read.operation.beside(folder)})


def create_keys(folder: Path, name: str) -> None:
    """Write a fresh key of each algorithm.

    Args:
        folder: of the key files; made if there is none.
        name: of the keys.

    Raises:
        MalformedError: ``name`` is not a key name.
        RefusedError: a key is there already.
        UnsupportedError: the cryptography library lacks ML-DSA.
    """
    ed25519, mldsa = PrivateKey.generate(), MlDsaPrivateKey.generate()
    SigningKey(name, COSIGNATURE_V1, ed25519)  # checks the name
    key_files.write_seed(folder / f"{ED25519}.key", ed25519)
    key_files.write_seed(folder / f"{ML_DSA_44}.key", mldsa)


def load_keys(settings: Settings) -> tuple[SigningKey, ...]:
    """Return the keys of the algorithms that the settings name.

    Raises:
        MalformedError: a file is missing, holds something else, or is open to others.
        UnsupportedError: the cryptography library lacks ML-DSA.
    """
    found: list[SigningKey] = []
    for algorithm in dict.fromkeys(settings.algorithms):
        seed = key_files.read_seed(settings.secrets / f"{algorithm}.key")
        if algorithm == ED25519:
            found.append(SigningKey(settings.name, COSIGNATURE_V1, PrivateKey.from_seed(seed)))
        else:
            key = MlDsaPrivateKey.from_seed(seed)
            found.append(SigningKey(settings.name, MLDSA_COSIGNATURE, key))
    return tuple(found)
