"""Settings of the verifier service: one YAML file, overridden by environment variables.

``RAGAUDIT_VERIFIER__LISTEN__PORT=8443`` overrides ``listen.port``. Secrets are not settings: they
are files in the folder ``secrets`` (`keys`), or members ending in ``_file`` name them.

Among them: which models a verifier has of its own, embedders to repeat embeddings of sampled texts
(check 18), and language models to repeat probes and votes (checks 29 and 30).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self

import yaml
from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict
from ragaudit.encoding.errors import MalformedSettings, UnavailableError
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.log.database import WAIT_SECONDS
from ragaudit.ledger.messages.promises import MAX_SUBMITTED_BYTES
from ragaudit.serving.jobs.opening import JobSettings
from ragaudit.serving.peers import ProxyNetwork
from ragaudit.serving.rounds import BeaconSettings
from ragaudit.serving.settings import (
    HEX32_PATTERN,
    FileSettings,
    OperationSettings,
    Section,
    Url,
    beside,
    read_secret_file,
)
from ragaudit.verifier.history import FencePlace

BoundedUrl = Annotated[Url, Field(max_length=2048)]
Model = Annotated[str, Field(min_length=1, max_length=256)]


class EndpointSettings(Section):
    """How this verifier reaches a service with ``POST /embeddings``.

    It is asked for the committed probes before texts; if its answers differ, check 18 is NOT
    ESTABLISHED.

    Attributes:
        url: of the service, up to ``/embeddings``.
        models: those for which the service is trusted; a manifest may declare any.
        key_file: a secret file with the API key.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        timeout_seconds: timeout of each phase of a call.
    """

    url: BoundedUrl
    models: tuple[Model, ...] = Field(min_length=1, max_length=64)
    key_file: Path | None = None
    ca_file: Path | None = None
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)


class EmbedderSettings(Section):
    """Beside the bundled WordLlama, which needs nothing: a model's folder, and a service.

    Which one a window needs, its manifest says; what is not there leaves A1 not established.

    Attributes:
        folder: of the model of ``sentence-transformers``.
        endpoint: of ``openai-compatible``.
    """

    folder: Path | None = None
    endpoint: EndpointSettings | None = None


BUNDLED: Final = EmbedderSettings()
"""Of a verifier that has nothing but the bundled embedder."""


def absolute_embedder(folder: Path, settings: EmbedderSettings) -> EmbedderSettings:
    """Return the settings with paths relative to the folder of the settings file.

    Args:
        folder: of the settings file.
        settings: are not changed.
    """
    found = beside(folder, settings, "folder")
    if found.endpoint is None:
        return found
    endpoint = beside(folder, found.endpoint, "key_file", "ca_file")
    return found.model_copy(update={"endpoint": endpoint})


class GeneratorSettings(Section):
    """A service that speaks OpenAI's API.

    Attributes:
        url: of the service, up to ``/completions``.
        models: those for which the service is trusted; a manifest may name any.
        vocabulary_file: a JSON list of the texts of all tokens, for a model that is asked for
            tokens; one of whole answers has none.
        served_as: what the service calls its model where that is not the manifest's name.
        key_file: a secret file with the API key.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        batch: prompts in one call.
        parallel: calls at a time.
        timeout_seconds: timeout of each phase of a call.
    """

    url: BoundedUrl
    models: tuple[Model, ...] = Field(min_length=1, max_length=64)
    vocabulary_file: Path | None = None
    served_as: Model | None = None
    key_file: Path | None = None
    ca_file: Path | None = None
    batch: int = Field(default=16, ge=1, le=2048)
    parallel: int = Field(default=4, ge=1, le=64)
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)

    def beside(self, folder: Path) -> "GeneratorSettings":
        """Return the section with its files relative to ``folder``, that of the settings."""
        return beside(folder, self, "vocabulary_file", "key_file", "ca_file")


ENVIRONMENT_PREFIX = "RAGAUDIT_VERIFIER__"
MIB = 2**20
MAX_ITEM_BYTES = 2**31  # an evidence item (docs/spec/10-verdict.md §10.2)

EngineName = Literal["auto", "core", "reference"]


class Listen(Section):
    """Where the service listens.

    Attributes:
        host: address on which the service listens.
        port: port on which it listens.
        tls_certificate: PEM file of the certificate; TLS ends here if both files are given.
        tls_key: PEM file of the key.
        trusted_proxies: networks (CIDR) of proxies in front whose ``X-Forwarded-For`` says who
            asks.
    """

    host: str = "127.0.0.1"
    port: int = Field(default=8742, ge=0, le=65535)
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    trusted_proxies: tuple[ProxyNetwork, ...] = ()


class Limits(Section):
    """Caps on what others may send: bytes of one body, or what one window may hold.

    Attributes:
        json_bytes: a provider's longest JSON, where its call may have that much
            (docs/spec/08-services.md §8.3).
        anonymous_bytes: the longest body that nobody signed.
        dispute_bytes: the longest receipt file.
        anonymous_at_once: how many such bodies are parsed at a time: parsed JSON takes up to 16
            times its bytes.
        index_bytes: the longest index commitment; a row takes 64 bytes.
        records_bytes: the longest handover; less if log or policy say so.
        entries: the most entries of one window.
        checkpoints: the most checkpoints of one window.
        waiting_windows: windows of one provider that wait for a countersignature.
        waiting_bytes: all windows of one provider without a countersignature, refused ones for
            good.
        version_bytes: later versions of indexes of one provider in one window.
        windows_per_day: windows that one provider registers in 24 hours.
        submitted_bytes: for each of receipts, refusals, claims and disputes of one window, as far
            as its slots have shares (docs/spec/08-services.md §8.8), which it bounds: nothing is
            set aside for a slot. Every list of the evidence stays within the largest item.
    """

    json_bytes: int = Field(default=64 * MIB, ge=1024, le=2**28)
    anonymous_bytes: int = Field(default=4 * MIB, ge=1024, le=64 * MIB)
    dispute_bytes: int = Field(default=16 * MIB, ge=1024, le=64 * MIB)
    anonymous_at_once: int = Field(default=4, ge=1, le=64)
    index_bytes: int = Field(default=512 * MIB, ge=1024, le=MAX_ITEM_BYTES)
    records_bytes: int = Field(default=MAX_ITEM_BYTES, ge=1024, le=MAX_ITEM_BYTES)
    entries: int = Field(default=400_000, ge=1)
    checkpoints: int = Field(default=400_000, ge=1)
    waiting_windows: int = Field(default=16, ge=1)
    waiting_bytes: int = Field(default=8192 * MIB, ge=1024)
    version_bytes: int = Field(default=8192 * MIB, ge=1024)
    windows_per_day: int = Field(default=100, ge=1)
    submitted_bytes: int = Field(default=MAX_SUBMITTED_BYTES, ge=MIB, le=MAX_SUBMITTED_BYTES)


class StoreSettings(FileSettings):
    """Settings of a service with keys, a database and a fence.

    Attributes:
        name: name of the cosigner's key, a schema-less URL such as ``regulator.example/cosigner``.
        data: folder of the database and of temporary files.
        secrets: folder of the key files.
        database: SQLAlchemy URL; SQLite in ``data`` when absent.
        database_wait_seconds: how long a service or worker that starts waits for a server.
        fence: file that tells a restored database; in ``data`` when absent. On another disk, and in
            no backup.
        operation: how the service is watched.
    """

    name: str
    data: Path
    secrets: Path
    database: str | None = None
    database_wait_seconds: int = Field(default=WAIT_SECONDS, ge=0, le=3600)
    fence: Path | None = None
    operation: OperationSettings = OperationSettings()

    @property
    def database_url(self) -> str:
        """URL of the database."""
        return self.database or f"sqlite:///{self.data / self.service.lower()}.db"

    @property
    def fence_path(self) -> Path:
        """Path of the fence."""
        return self.fence or self.data / f"{self.service.lower()}.fence"

    @property
    def fence_place(self) -> FencePlace:
        """Where the fence is, and whose."""
        return FencePlace(self.fence_path, self.name)


class Settings(StoreSettings):
    """All settings of the service.

    Attributes:
        arbiter_key: public key of the arbiter, hexadecimal; policies must name it, or null.
        terms: file of the terms on which this verifier audits; the shipped ones when absent.
        database_file: a secret file with the URL instead, for one that holds a password.
        engine: who checks the arguments: the compiled core, the reference, or the core if present.
        listen: where the service listens.
        limits: what others may send and have stored.
        positions: file of ``ragaudit verifier positions FILE``, so that fewer generators are
            derived anew: halves the time of checking records over positions not seen before.
        retention_days: how long after its verdict the confidential evidence of a window is kept;
            for good when absent.
        time_stamp_roots: PEM file of the time-stamping authorities (RFC 3161) that are trusted;
            none when absent.
        beacon: where rounds of a randomness beacon come from. Windows with a beacon of any other
            chain are refused: who holds a chain's key knows its rounds. Without sources, the
            provider's are used; every round is verified.
        tick_seconds: how often the service looks for work that an instant has made due.
        jobs: who checks the arguments of an audit.
        embedder: which embedders this verifier has beside the bundled one.
        generator: where this verifier asks language models that windows commit to; nowhere when
            absent, which leaves checks 29 and 30 not established, and such a window CONDITIONAL at
            best.
    """

    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX)
    service: ClassVar[str] = "VERIFIER"

    arbiter_key: str | None = Field(default=None, pattern=HEX32_PATTERN)
    terms: Path | None = None
    database_file: Path | None = None
    engine: EngineName = "auto"
    listen: Listen = Listen()
    limits: Limits = Limits()
    positions: Path | None = None
    retention_days: int | None = Field(default=None, ge=1, le=36_500)
    time_stamp_roots: Path | None = None
    beacon: BeaconSettings = BeaconSettings()
    tick_seconds: float = Field(default=1.0, gt=0, le=60)
    jobs: JobSettings = JobSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    generator: GeneratorSettings | None = None

    @model_validator(mode="after")
    def _one_database(self) -> Self:
        if self.database is not None and self.database_file is not None:
            raise ValueError("database and database_file are both given; expected one of them")
        return self

    @property
    def arbiter(self) -> PublicKey | None:
        """The arbiter's public key; MalformedError if the setting is none."""
        return (
            None if self.arbiter_key is None else PublicKey.from_raw(hex_decode(self.arbiter_key))
        )

    @property
    def time_stamp_root_bytes(self) -> bytes | None:
        """The trusted roots, PEM; MalformedSettings if the file cannot be read."""
        if self.time_stamp_roots is None:
            return None
        try:
            return self.time_stamp_roots.read_bytes()
        except OSError as error:
            where = f"time_stamp_roots: {self.time_stamp_roots}"
            raise MalformedSettings(f"cannot read: {error.strerror}", where=where) from None


def load(path: Path) -> Settings:
    """Return the settings of a YAML file and the environment, with absolute paths.

    Raises:
        MalformedSettings, MalformedError: as `FileSettings.read`.
    """
    folder = path.resolve().parent
    names = ("data", "secrets", "database_file", "fence", "terms", "positions", "time_stamp_roots")
    read = beside(folder, Settings.read(path), *names)
    url = read.database if read.database_file is None else read_secret_file(read.database_file)
    sections = {
        "database": url,
        "beacon": read.beacon.beside(folder),
        "jobs": beside(folder, read.jobs, "folder"),
        "operation": read.operation.beside(folder),
        "embedder": absolute_embedder(folder, read.embedder),
        "generator": None if read.generator is None else read.generator.beside(folder),
    }
    return read.model_copy(update=sections)


def write(path: Path, document: Mapping[str, object]) -> Settings:
    """Write a settings file, and read it back.

    Args:
        path: of a file that does not exist.
        document: members of `Settings`; those left out have their defaults.

    Raises:
        UnavailableError: it exists, or cannot be written.
        MalformedError: as `load`.
    """
    write_document(path, document)
    return load(path)


def write_document(path: Path, document: Mapping[str, object]) -> None:
    """Write a YAML file that only its owner reads, as it may get a password.

    Args:
        path: of a file that does not exist.
        document: plain values.

    Raises:
        UnavailableError: it exists, or cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yaml.safe_dump(dict(document), file, sort_keys=False)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnavailableError(f"settings cannot be written: {reason}", where=str(path)) from None


def make_data_folder(settings: StoreSettings) -> None:
    """Make the folder ``data``, for its owner only, or leave the one that there is.

    Raises:
        UnavailableError: it cannot be made.
    """
    try:
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnavailableError(f"no folder: {reason}", where=str(settings.data)) from None
