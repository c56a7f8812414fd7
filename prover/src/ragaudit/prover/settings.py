"""Settings: one YAML file; ``RAGAUDIT_PROVER__SECTION__KEY`` in the environment overrides it.

Secrets are never settings: members ending in ``_file`` name the files that hold them. Relative
paths are relative to the folder of the YAML file.
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_settings import SettingsConfigDict
from ragaudit.encoding.errors import MalformedError, MalformedSettings
from ragaudit.encoding.parameters import LIMITS, B
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.ledger.errors import MalformedTrustPolicy
from ragaudit.ledger.log.database import WAIT_SECONDS
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.prover.backend_settings import (
    BackendSettings,
    ChannelSettings,
    EmbedderSettings,
    GeneratorSettings,
    absolute_backend,
    absolute_embedder,
    exact_text,
)
from ragaudit.serving.jobs.opening import JobSettings
from ragaudit.serving.peers import ProxyNetwork
from ragaudit.serving.rounds import BeaconSettings
from ragaudit.serving.settings import (
    DECIMAL_PATTERN,
    HEX32_PATTERN,
    NAME_PATTERN,
    PROVIDER_PATTERN,
    FileSettings,
    OperationSettings,
    Section,
    Url,
    beside,
    malformed,
    read_secret_file,
)

Decimal = Annotated[
    str,
    BeforeValidator(exact_text),
    Field(pattern=DECIMAL_PATTERN),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": DECIMAL_PATTERN}, {"type": "integer"}]}
    ),
]

Hex32 = Annotated[str, Field(pattern=HEX32_PATTERN)]


class TenantSampleSettings(Section):
    """How the strata that hold all records of a tenant are sampled."""

    eta: Decimal = "0.0009765625"
    minimum: int = Field(default=10, ge=0, le=10**6)


class SubmitterSampleSettings(Section):
    """How the strata of submitted records are sampled: one per account, or one per tenant.

    An eta as small as the tenants' would sample most of a small account's records, and the more
    accounts submit, the more of the log.
    """

    by: Literal["account", "tenant"] = "account"
    eta: Decimal = "0.5"
    minimum: int = Field(default=1, ge=0, le=10**6)


class AuditSettings(Section):
    """How the verifier samples."""

    mode: Literal["A", "B"] = "B"
    beta: Decimal = "0.1"
    tenants: TenantSampleSettings = TenantSampleSettings()
    submitters: SubmitterSampleSettings = SubmitterSampleSettings()
    deadline_seconds: int = Field(default=3600, ge=1, le=10**7)


class RowSampleSettings(Section):
    """How a verifier samples rows of each tenant's index."""

    beta: Decimal = "0.1"
    eta: Decimal = "0.0009765625"
    minimum: int = Field(default=10, ge=0, le=4096)  # no verifier takes more (spec 9.11)


class OwnerSettings(Section):
    """What owners of documents can check of a window (docs/spec/05-records.md §5.16).

    Attributes:
        rows: how a verifier samples rows; without it none are.
        keys: by tenant, the public key of its owner.
    """

    rows: RowSampleSettings | None = None
    keys: dict[Annotated[str, Field(pattern=NAME_PATTERN)], Hex32] = Field(default_factory=dict)

    def member(self) -> dict[str, Any]:
        """Return the member ``owners`` of a policy."""
        return {"rows": None if self.rows is None else self.rows.model_dump()}


class StampSettings(Section):
    """Who stamps opening and final checkpoints, and how long that may take.

    Attributes:
        authorities: their URLs; nobody is asked without them.
        roots_file: PEM, the roots that vouch for them; an answer that they do not is not kept.
        every_seconds: how often those are asked again that have not answered.
        timeout_seconds: for each phase of a call.
        ca_file: PEM file of the certificate authorities to trust instead of the usual, for TLS.
        proxy: URL of the HTTP proxy through which they are reached.
    """

    authorities: tuple[Url, ...] = Field(default=(), max_length=8)
    roots_file: Path | None = None
    every_seconds: float = Field(default=15.0, ge=0.1, le=3600)
    timeout_seconds: float = Field(default=10.0, gt=0, le=60)
    ca_file: Path | None = None
    proxy: Url | None = None


class StoreSettings(Section):
    """The database, and the folder of the fences, which should be another disk.

    Attributes:
        url: of SQLAlchemy.
        url_file: a secret file with the URL instead, for one that holds a password.
        wait_seconds: how long a service or worker that starts waits for a server to answer.
        retention_days: after a finished window's end all but its public part is deleted; None: it
            is kept.
    """

    url: str = "sqlite:///prover.db"
    url_file: Path | None = None
    wait_seconds: int = Field(default=WAIT_SECONDS, ge=0, le=3600)
    fence_folder: Path = Path("fences")
    free_bytes_min: int = Field(default=64 * 2**20, ge=0, le=2**50)
    retention_days: int | None = Field(default=None, ge=1, le=36_500)

    @model_validator(mode="after")
    def _one_url(self) -> "StoreSettings":
        if self.url_file is not None and "url" in self.model_fields_set:
            raise ValueError("url and url_file are both given; expected one of them")
        return self

    def beside(self, folder: Path) -> "StoreSettings":
        """Return the section with absolute paths, and with the URL of its file.

        Args:
            folder: of the settings.
        """
        store = beside(folder, self, "fence_folder", "url_file")
        given = store.url if store.url_file is None else read_secret_file(store.url_file)
        return store.model_copy(update={"url": _absolute_url(given, folder)})


def _absolute_url(url: str, folder: Path) -> str:
    prefix = "sqlite:///"
    file = url.removeprefix(prefix)
    # Otherwise the database would depend on the folder in which the service is started.
    if file != url and file not in {"", ":memory:"} and not file.startswith("/"):
        return prefix + str(folder / file)
    return url


MAX_POLICY_BYTES = 2**18


class CosignerSettings(Section):
    """Who is asked to cosign checkpoints beside the verifier, and how long that may take.

    Attributes:
        policy_file: a tlog-policy file (docs/spec 6.12) with the URLs of those who are asked, and
            the quorum; without it nobody is asked.
        every_seconds: how often they are asked, all for one checkpoint.
        timeout_seconds: for each phase of a call.
        wait_seconds: how long the proof of a receipt waits for the quorum; then it is given
            without.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        proxy: URL of the HTTP proxy through which they are reached.
    """

    policy_file: Path | None = None
    every_seconds: float = Field(default=5.0, ge=0.1, le=3600)
    timeout_seconds: float = Field(default=5.0, gt=0, le=60)
    wait_seconds: int = Field(default=15, ge=0, le=3600)
    ca_file: Path | None = None
    proxy: Url | None = None


def read_trust(settings: CosignerSettings) -> TrustPolicy | None:
    """Return the policy of the further cosigners, None if there are none.

    Raises:
        MalformedSettings: no such file, a line that is not of the format, a line of a log, or
            nobody with a URL.
    """
    path = settings.policy_file
    if path is None:
        return None
    where = f"cosigners.policy_file: {path}"
    try:
        with path.open("rb") as file:
            policy = TrustPolicy.parse(file.read(MAX_POLICY_BYTES + 1))
    except OSError as error:
        raise MalformedSettings(f"cannot read: {error.strerror}", where=where) from None
    except MalformedTrustPolicy as error:
        raise MalformedSettings(
            error.what, where=f"{where}, {error.where}", expected=error.expected
        ) from error
    except MalformedError as error:
        raise MalformedSettings(error.what, where=where) from error
    # A window's log has a key of its own, which nobody knows before.
    if policy.logs:
        raise MalformedSettings("a line of a log", where=where, expected="witnesses only")
    if not any(each.url for each in policy.cosigners):
        raise MalformedSettings("nobody to ask", where=where, expected="a witness with a URL")
    return policy


SurfaceName = Literal["openai", "chroma", "qdrant", "mcp", "dify"]
# Asymmetric only: with a shared secret whoever verifies a token could make one.
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
Tenant = Annotated[str, Field(pattern=NAME_PATTERN)]
# Fits every client: Chroma demands 3 to 512 characters, and the name is part of a path.
Collection = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{1,126}[A-Za-z0-9]$")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]

USER_HEADER = "Ragaudit-User"


class JwtSettings(Section):
    """How an end user's token is verified: the keys, and who must have issued it for whom.

    ``ca_file`` has the authorities to trust for ``jwks_url`` instead of the usual.
    """

    header: HeaderName = "Ragaudit-User-Token"
    jwks_file: Path | None = None
    jwks_url: Url | None = None
    ca_file: Path | None = None
    issuer: str = Field(min_length=1, max_length=512)
    audience: str = Field(min_length=1, max_length=512)
    claim: str = Field(default="sub", min_length=1, max_length=64)
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "ES256", "EdDSA"), min_length=1)
    leeway_seconds: int = Field(default=5, ge=0, le=300)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.jwks_file is None) == (self.jwks_url is None):
            raise ValueError("no source of keys, or two; expected jwks_file or jwks_url")
        return self


class DelegationSettings(Section):
    """Whose key may name an end user, and how.

    Attributes:
        header: in which a name is believed as it stands; left out, ``Ragaudit-User`` without
            ``jwt`` and none beside it: who has tokens verified wants no name that is not.
    """

    accounts: tuple[str, ...] = ()
    jwt: JwtSettings | None = None
    header: HeaderName | None = Field(
        default_factory=lambda given: None if given.get("jwt") else USER_HEADER
    )
    register_tenants: tuple[Tenant, ...] = ()


class WriteSettings(Section):
    """Who writes through Chroma's interface: nobody else does, whatever may be read.

    Attributes:
        accounts: whose key writes for the account itself.
        users: end users who write, by the account that names them.
    """

    accounts: tuple[str, ...] = ()
    users: dict[str, tuple[str, ...]] = Field(default_factory=dict)


def _listed(writes: object) -> object:
    if writes is not False and not isinstance(writes, dict | WriteSettings):
        raise ValueError("not who may write; expected false, or lists of accounts and users")
    return writes


class QdrantSettings(Section):
    """Where a payload has a row's text and its metadata; flat metadata if its key is null."""

    content_key: str = Field(default="page_content", min_length=1, max_length=64)
    metadata_key: str | None = Field(default="metadata", min_length=1, max_length=64)


class SurfaceSettings(Section):
    """Which surfaces there are, and which collection is which tenant."""

    enabled: tuple[SurfaceName, ...] = ()
    # A name that does not stand here does not exist, whatever the store has.
    collections: dict[Collection, Tenant] = Field(default_factory=dict)
    delegation: DelegationSettings = DelegationSettings()
    writes: Annotated[WriteSettings | Literal[False], BeforeValidator(_listed)] = False
    qdrant: QdrantSettings = QdrantSettings()
    batch_max: int = Field(default=16, ge=1, le=64)
    max_body_bytes: int = Field(default=8 * 2**20, ge=1024, le=2**26)

    def beside(self, folder: Path) -> "SurfaceSettings":
        """Return the section with its files relative to ``folder``, that of the settings."""
        jwt = self.delegation.jwt
        if jwt is None:
            return self
        absolute = beside(folder, jwt, "jwks_file", "ca_file")
        delegation = self.delegation.model_copy(update={"jwt": absolute})
        return self.model_copy(update={"delegation": delegation})


ENVIRONMENT_PREFIX = "RAGAUDIT_PROVER__"
SETTINGS_VARIABLE = "RAGAUDIT_PROVER_SETTINGS"
MAX_ALIASES = 64  # each is a time series of its own wherever metrics are kept


class ServerSettings(Section):
    """Where the service listens, and which proxies before it say for whom they ask."""

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    max_body_bytes: int = Field(default=65536, ge=1024, le=2**20)
    trusted_proxies: tuple[ProxyNetwork, ...] = ()


class KeySettings(Section):
    """Files of the provider's signing key and of the operator token's SHA-256."""

    provider_file: Path = Path("keys/provider.key")
    operator_digest_file: Path = Path("keys/operator.sha256")


class VerifierSettings(Section):
    """The verifier service and the keys it must show, called as in a policy's ``keys``.

    Without the three pins no service starts, unless ``allow_unpinned`` says that whoever answers
    first is to be believed.
    """

    url: Url = "http://127.0.0.1:8742"
    arbiter_key: Hex32 | None = None
    cosigner_key: str | None = None
    verifier_key: Hex32 | None = None
    verdict_key: Hex32 | None = None
    allow_unpinned: bool = False
    timeout_seconds: float = Field(default=10.0, gt=0, le=600)
    ca_file: Path | None = None
    proxy: Url | None = None

    @property
    def unpinned(self) -> list[str]:
        """Names of the members that should pin a key and do not."""
        names = ("cosigner_key", "verifier_key", "verdict_key")
        return [name for name in names if getattr(self, name) is None]


class EstimatorSettings(Section):
    """Parameters of the coalition estimator."""

    theta: Decimal = "0.9"
    tau_seconds: int = Field(default=600, ge=1, le=10**7)
    sketch_bits: int = Field(default=256, ge=LIMITS.sketch_bits_min, le=LIMITS.sketch_bits_max)


def _relation(value: object) -> object:
    """An index is committed with its number of rows: neighbours have the same size."""
    if value not in (NeighboringRelation.REPLACE, NeighboringRelation.NULL_REPLACE):
        raise ValueError("no relation of indexes; expected replace or null-replace")
    return value


Relation = Annotated[NeighboringRelation, BeforeValidator(_relation)]


# What only a window with noise has.
_OF_NOISE = (
    "sigma",
    "epsilon_acc",
    "delta_acc",
    "delta_policy",
    "relation",
    "rows_per_document",
    "coalition_max",
    "coalition_estimate",
    "experiment_seed",
)
_LARGE_B = 4095


class WindowSettings(Section):
    """What a new window's policy says. Times count from the moment the window is created.

    Attributes:
        privacy: "gaussian", or "none", with which the members of the noise are left out.
        public_columns: the type of each public column, by name.
        filters: whether requests may filter by public columns.
        account_index: whether the log ends with an index that proves every account's count.
        owners: what owners of documents can check; without it nothing.
        coalition_estimate: what k-hat counts: accounts that ask "alike" within tau, or accounts'
            worth of questions in one "direction" (docs/spec/07-coalition.md §7.5).
        cosigners: whether the policy names the further cosigners of ``cosigners.policy_file``, and
            what follows without their quorum: the audit fails, or the verdict says so.
        epochs: whether the window may go on under a new seed after a restore.
        time_stamps: likewise, of time stamps.
        beacon_delay_seconds: delta of the beacon, whose chain the policy names with it.
        embedder_tolerance: None: 0 of a deterministic embedder, 4 of another.
        generation: terms of a generation channel; it needs the section ``generator``.
        register_accounts: whether every account of the served tenants is registered as plain as
            soon as the window is countersigned, so that it can ask from the opening on.
    """

    privacy: Literal["gaussian", "none"] = "gaussian"
    norm_bound: Literal[127, 4095] | None = None
    metric: Literal["cosine", "inner-product", "l2"] = "cosine"
    largest_norm: Decimal | None = None
    public_columns: dict[str, Literal["string", "integer", "number", "boolean"]] = Field(
        default_factory=dict
    )
    filters: bool = False
    query_kinds: tuple[Literal["text", "vector"], ...] = ("text",)
    retry_seconds: int = Field(default=60, ge=0, le=3600)
    versions: bool = False
    account_index: bool = True
    owners: OwnerSettings | None = None
    coalition_estimate: Literal["alike", "direction"] = "alike"
    cosigners: Literal["required", "reported"] | None = None
    epochs: bool = True
    time_stamps: Literal["required", "reported"] | None = None
    beacon_delay_seconds: int | None = Field(default=None, ge=0, le=3600)
    generation: ChannelSettings | None = None
    register_accounts: bool = False
    opens_after_seconds: int = Field(default=120, ge=1, le=10**7)
    length_seconds: int = Field(default=86_400, ge=1, le=400 * 86_400)
    activation_every_seconds: int = Field(default=3600, ge=1, le=10**7)
    sampling_after_seconds: int = Field(default=3600, ge=1, le=10**7)
    epsilon_acc: Decimal | None = "10"
    delta_acc: Decimal = "0.000001"
    delta_policy: Decimal = "0.000001"
    sigma: Decimal | None = None
    relation: Relation = NeighboringRelation.NULL_REPLACE
    rows_per_document: int = Field(default=1, ge=1, le=1000)
    top_k_max: int = Field(default=5, ge=1, le=LIMITS.top_k)
    queries_per_account: int = Field(default=50, ge=1, le=10**6)
    slots: int = Field(default=64, ge=1, le=10**6)
    coalition_max: int = Field(default=10, ge=1, le=10**6)
    query_text_disclosure: Literal["sampled", "none"] = "sampled"
    embedder_tolerance: int | None = Field(default=None, ge=0, le=65535)
    estimator: EstimatorSettings = EstimatorSettings()
    audit: AuditSettings = AuditSettings()
    merge_delay_seconds: int = Field(default=60, ge=1, le=86_400)
    clock_skew_seconds: int = Field(default=5, ge=1, le=86_400)
    promise_life_seconds: int = Field(default=600, ge=1, le=86_400)
    claim_margin_seconds: int = Field(default=60, ge=1, le=86_400)
    release_seconds: int = Field(default=600, ge=1, le=10**7)
    experiment_seed: str | None = None

    @model_validator(mode="after")
    def _check_absent(self) -> Self:
        """Refuse what would be read as a promise and is none."""
        for name in _OF_NOISE if self.privacy == "none" else ():
            if name in self.model_fields_set and getattr(self, name) is not None:
                raise ValueError(f'{name} has no meaning with window.privacy "none": leave it out')
        if self.privacy == "gaussian" and self.norm_bound == _LARGE_B:
            raise ValueError('norm_bound 4095 needs window.privacy "none"; with noise it is 127')
        if (self.metric == "inner-product") != (self.largest_norm is not None):
            raise ValueError("largest_norm belongs to the metric inner-product, and to no other")
        if self.filters and not self.public_columns:
            raise ValueError("filters are of public_columns, and there are none")
        if not self.query_kinds or len(set(self.query_kinds)) < len(self.query_kinds):
            raise ValueError("query_kinds must be distinct, and at least one")
        return self

    @property
    def bound(self) -> int:
        """B: 127 with noise; without it 4095, unless ``norm_bound`` says 127."""
        return self.norm_bound or (_LARGE_B if self.privacy == "none" else B)


class TimingSettings(Section):
    """How often the background tasks look."""

    checkpoint_seconds: float = Field(default=0.25, gt=0, le=0.3)
    driver_seconds: float = Field(default=0.25, gt=0, le=60)
    # How long before an instant a stale index is committed to anew, to be in force from then on.
    refresh_before_seconds: float = Field(default=60.0, gt=0, le=86_400)


class LimitSettings(Section):
    """What one caller may take of the service: an account, or a peer without a known key."""

    workers: int = Field(default=8, ge=1, le=32)
    waiting: int = Field(default=16, ge=1, le=1000)
    wait_seconds: float = Field(default=5.0, gt=0, le=60)
    account_per_second: int = Field(default=100, ge=1, le=10_000)
    peer_per_second: int = Field(default=200, ge=1, le=10_000)


class ProverOperation(OperationSettings):
    """How the service is watched.

    Attributes:
        tenant_aliases: names under which metrics show what is left of tenants' budgets; the
            tenants without one are shown together, as ``other``.
    """

    tenant_aliases: dict[str, Annotated[str, Field(pattern=NAME_PATTERN)]] = Field(
        default_factory=dict, max_length=MAX_ALIASES
    )


class Settings(FileSettings):
    """The whole file."""

    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX, validate_default=False)
    service: ClassVar[str] = "PROVER"

    provider: Annotated[str, Field(pattern=PROVIDER_PATTERN)]
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    keys: KeySettings = KeySettings()
    verifier: VerifierSettings = VerifierSettings()
    cosigners: CosignerSettings = CosignerSettings()
    time_stamps: StampSettings = StampSettings()
    beacon: BeaconSettings = BeaconSettings()
    backend: BackendSettings = BackendSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    generator: GeneratorSettings | None = None
    window: WindowSettings = WindowSettings()
    timing: TimingSettings = TimingSettings()
    limits: LimitSettings = LimitSettings()
    jobs: JobSettings = JobSettings()
    operation: ProverOperation = ProverOperation()
    surfaces: SurfaceSettings = SurfaceSettings()


def load_settings(path: Path) -> Settings:
    """Return the settings of a YAML file and the environment, with absolute paths.

    Raises:
        MalformedSettings, MalformedError: as `FileSettings.read`.
    """
    return _absolute(Settings.read(path), path.resolve().parent)


def window_settings(base: WindowSettings, overrides: dict[str, Any]) -> WindowSettings:
    """Return the settings of one window: ``base`` with members replaced.

    Members of the noise that the settings give for other windows are not taken over by one that is
    overridden to have none, nor a norm bound by one that is overridden to have noise.

    Args:
        overrides: members by name, sections nested.

    Raises:
        MalformedSettings: an unknown member, a value out of range, or one that does not apply.
    """
    given = base.model_dump(exclude_unset=True)
    privacy = overrides.get("privacy", base.privacy)
    if privacy != base.privacy:
        left = _OF_NOISE if privacy == "none" else ("norm_bound",)
        given = {name: value for name, value in given.items() if name not in left}
    try:
        return WindowSettings.model_validate(_merged(given, overrides))
    except ValidationError as error:
        raise malformed(error, "overrides") from None


def _merged(base: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in overrides.items():
        known = merged.get(name)
        nested = isinstance(known, dict) and isinstance(value, dict)
        merged[name] = _merged(known or {}, value) if nested else value
    return merged


def _absolute(settings: Settings, folder: Path) -> Settings:
    generator = settings.generator
    return settings.model_copy(
        update={
            "verifier": beside(folder, settings.verifier, "ca_file"),
            "cosigners": beside(folder, settings.cosigners, "ca_file", "policy_file"),
            "time_stamps": beside(folder, settings.time_stamps, "ca_file", "roots_file"),
            "beacon": settings.beacon.beside(folder),
            "backend": absolute_backend(folder, settings.backend),
            "embedder": absolute_embedder(folder, settings.embedder),
            "store": settings.store.beside(folder),
            "generator": generator and generator.beside(folder),
            "keys": beside(folder, settings.keys, *KeySettings.model_fields),
            "jobs": beside(folder, settings.jobs, "folder"),
            "operation": settings.operation.beside(folder),
            "surfaces": settings.surfaces.beside(folder),
        }
    )
