"""Settings: one YAML file; ``RAGAUDIT_PROVER__SECTION__KEY`` in the environment overrides it.

Secrets are never settings: members ending in ``_file`` name the files that hold them. Relative
paths are relative to the folder of the YAML file.
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_settings import SettingsConfigDict
from ragaudit.encoding.parameters import LIMITS, B
from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.prover.backend_settings import BackendSettings, absolute_backend
from ragaudit.prover.cosigner_settings import CosignerSettings
from ragaudit.prover.embedder_settings import EmbedderSettings, absolute_embedder
from ragaudit.prover.generation_settings import ChannelSettings, GeneratorSettings
from ragaudit.prover.sampling_settings import AuditSettings, Decimal, Hex32, OwnerSettings
from ragaudit.prover.stamp_settings import StampSettings
from ragaudit.prover.store_settings import StoreSettings
from ragaudit.prover.surface_settings import SurfaceSettings
from ragaudit.serving.jobs.opening import JobSettings
from ragaudit.serving.peers import ProxyNetwork
from ragaudit.serving.rounds import BeaconSettings
from ragaudit.serving.settings import (
    NAME_PATTERN,
    PROVIDER_PATTERN,
    FileSettings,
    OperationSettings,
    Section,
    Url,
    beside,
    malformed,
)

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
