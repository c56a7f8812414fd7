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
    """How the strata that hold all records of a tenant are sampled.

    Attributes:
        eta: the share of bad answers that the sample finds.
        minimum: the least number of records drawn of a tenant.
    """

    eta: Decimal = "0.0009765625"
    minimum: int = Field(default=10, ge=0, le=10**6)


class SubmitterSampleSettings(Section):
    """How the strata of submitted records are sampled: one per account, or one per tenant.

    An eta as small as the tenants' would sample most of a small account's records, and the more
    accounts submit, the more of the log.

    Attributes:
        by: what a stratum is of: an account, or a tenant.
        eta: the share of bad answers that the sample finds; a small one makes the prover prove most
            submitted records.
        minimum: the least number of records drawn of a stratum.
    """

    by: Literal["account", "tenant"] = "account"
    eta: Decimal = "0.5"
    minimum: int = Field(default=1, ge=0, le=10**6)


class AuditSettings(Section):
    """How the verifier samples.

    Attributes:
        mode: A: every record is checked; B: a sample (docs/spec/09-audit.md).
        beta: the chance to miss a share of bad answers of eta.
        tenants: how the strata of all records of a tenant are sampled.
        submitters: how the strata of submitted records are sampled.
        deadline_seconds: how long the prover has to prove and open the sample.
    """

    mode: Literal["A", "B"] = "B"
    beta: Decimal = "0.1"
    tenants: TenantSampleSettings = TenantSampleSettings()
    submitters: SubmitterSampleSettings = SubmitterSampleSettings()
    deadline_seconds: int = Field(default=3600, ge=1, le=10**7)


class RowSampleSettings(Section):
    """How a verifier samples rows of each tenant's index.

    Attributes:
        beta: the chance to miss a share of bad rows of eta.
        eta: the share of bad rows that the sample finds.
        minimum: the least number of rows drawn of an index.
    """

    beta: Decimal = "0.1"
    eta: Decimal = "0.0009765625"
    minimum: int = Field(default=10, ge=0, le=4096)  # no verifier takes more (spec 9.11)


class OwnerSettings(Section):
    """What owners of documents can check of a window (docs/spec/05-records.md §5.16).

    Attributes:
        rows: how a verifier samples rows of each index, whose texts it then gets; without it none
            are.
        keys: by tenant, the public key of the owner, which signs what the owner finds.
    """

    rows: RowSampleSettings | None = None
    keys: dict[Annotated[str, Field(pattern=NAME_PATTERN)], Hex32] = Field(default_factory=dict)

    def member(self) -> dict[str, Any]:
        """Return the member ``owners`` of a policy."""
        return {"rows": None if self.rows is None else self.rows.model_dump()}


class StampSettings(Section):
    """Who stamps opening and final checkpoints, and how long that may take.

    Attributes:
        authorities: URLs of RFC 3161 authorities that stamp opening and final checkpoint; nobody is
            asked without them.
        roots_file: PEM of the roots that vouch for them; an answer that they do not vouch for is
            not kept.
        every_seconds: how often those are asked again that have not answered.
        timeout_seconds: timeout of each phase of a call.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        proxy: URL of an HTTP proxy; those of the environment are not used.
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
        url: SQLAlchemy URL of the database.
        url_file: a secret file with the URL instead, for one that holds a password.
        wait_seconds: how long a service or worker that starts waits for a server to answer.
        fence_folder: one small file for each window; on another disk than the database, and in no
            backup.
        free_bytes_min: ``/readyz`` is 503 while database or fences have less disk left.
        retention_days: days after a finished window's end until all but its public part is deleted;
            null: it is kept.
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
        policy_file: a tlog-policy file (docs/spec/06-ledger.md) with the URLs of those who are
            asked, and the quorum; without it nobody is asked.
        every_seconds: how often they are asked, all for one checkpoint.
        timeout_seconds: timeout of each phase of a call.
        wait_seconds: how long the proof of a receipt waits for the quorum; then it is given
            without.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        proxy: URL of an HTTP proxy; those of the environment are not used.
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

    Attributes:
        header: the header that carries the token.
        jwks_file: file with the issuer's keys; this or ``jwks_url``.
        jwks_url: address of the issuer's keys.
        ca_file: PEM file of the certificate authorities to trust for ``jwks_url`` instead of the
            usual.
        issuer: the issuer that a token must name.
        audience: the audience that a token must name.
        claim: the claim that names the end user.
        algorithms: the signature algorithms that are accepted; asymmetric ones only.
        leeway_seconds: tolerated difference of the clocks.
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
        accounts: those whose key may name an end user.
        jwt: how tokens of end users are verified.
        header: the header that names an end user; the name is taken as it stands. Left out:
            ``Ragaudit-User`` without ``jwt``, and none beside it, since whoever verifies tokens
            wants no unverified name.
        register_tenants: tenants whose unknown end users are registered.
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
    """Where a payload has a row's text and its metadata.

    Attributes:
        content_key: the member of a payload with a row's text.
        metadata_key: the member with its metadata; null: flat beside the text.
    """

    content_key: str = Field(default="page_content", min_length=1, max_length=64)
    metadata_key: str | None = Field(default="metadata", min_length=1, max_length=64)


class SurfaceSettings(Section):
    """Which surfaces there are, and which collection is which tenant.

    Attributes:
        enabled: the interfaces that are served.
        collections: tenant by collection; a name that is not here does not exist, whatever the
            store has.
        delegation: whose key may name an end user.
        writes: false, or who may write.
        qdrant: where Qdrant's payloads have text and metadata.
        batch_max: the most queries in one call.
        max_body_bytes: longest body of a request to a surface.
    """

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
MAX_ALIASES = 64  # each is a time series of its own wherever metrics are kept


class ServerSettings(Section):
    """Where the service listens, and which proxies before it say for whom they ask.

    Attributes:
        host: address on which the service listens.
        port: port on which it listens.
        max_body_bytes: the longest request; a longer one gets 413.
        trusted_proxies: networks (CIDR) of proxies in front whose ``X-Forwarded-For`` says who
            asks.
    """

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    max_body_bytes: int = Field(default=65536, ge=1024, le=2**20)
    trusted_proxies: tuple[ProxyNetwork, ...] = ()


class KeySettings(Section):
    """Files of the provider's signing key and of the operator token's SHA-256.

    Attributes:
        provider_file: Ed25519 seed, mode 600, which signs receipts, promises and requests.
        operator_digest_file: SHA-256 of the operator's token.
    """

    provider_file: Path = Path("keys/provider.key")
    operator_digest_file: Path = Path("keys/operator.sha256")


class VerifierSettings(Section):
    """The verifier service and the keys it must show, called as in a policy's ``keys``.

    Without the three pins no service starts, unless ``allow_unpinned`` says that whoever answers
    first is to be believed.

    Attributes:
        url: address of the verifier service.
        arbiter_key: pins the arbiter's key; without it no window is made where the verifier shows
            an arbiter.
        cosigner_key: pins the key that cosigns checkpoints.
        verifier_key: pins the key that signs countersignatures and activations.
        verdict_key: pins the key that signs verdicts.
        allow_unpinned: for a first look only: trust whichever server answers first at the URL,
            which can then countersign as if it were the regulator.
        timeout_seconds: timeout of each phase of a call.
        ca_file: PEM file of the certificate authorities to trust instead of the usual.
        proxy: URL of an HTTP proxy; those of the environment are not used.
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
    """Parameters of the coalition estimator.

    Attributes:
        theta: cosine from which two questions count as alike.
        tau_seconds: time within which they must be asked to count as alike.
        sketch_bits: length of a query's sketch.
    """

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
        privacy: "gaussian", or "none": no noise and no epsilon, answers are the exact top K, and
            the members of the noise are left out.
        norm_bound: B of the integer vectors; null: 127 with noise, 4095 without.
        metric: the store's metric: "cosine", "l2" of unit vectors, or "inner-product", which needs
            ``largest_norm``.
        largest_norm: the largest norm of the store's vectors; for the metric inner-product.
        public_columns: the type of each public column, by name; their values are public.
        filters: whether requests may filter by public columns.
        query_kinds: what an account may send.
        retry_seconds: an account's identical request within this time is answered from the record,
            without a second draw.
        versions: whether an index may have later versions within the window.
        account_index: whether the log ends with an index that proves every account's number of
            records.
        owners: what owners of documents can check; without it nothing. Without noise, receipts then
            tell accounts of the tenant the secret behind its id keys.
        coalition_estimate: what k-hat counts: accounts that ask "alike" within tau, or accounts'
            worth of questions in one "direction" (docs/spec/07-coalition.md), which is hard to
            evade.
        cosigners: whether the policy names the further cosigners of ``cosigners.policy_file``, and
            what follows without their quorum: the audit fails, or the verdict says so.
        epochs: whether the window may go on under a new noise seed after a restore.
        time_stamps: the same for time stamps of opening and final checkpoint.
        beacon_delay_seconds: the policy names the chain of ``beacon``; each instant's round is the
            first due at least this long after it: longer than any witness's clock is wrong.
        generation: terms of a generation channel; it needs the section ``generator``.
        register_accounts: whether every account of the served tenants is registered as plain as
            soon as the window is countersigned, with its stored dispute key, so that it can ask
            from the opening on.
        opens_after_seconds: time until start and first activation instant; committing and
            countersigning must fit in.
        length_seconds: time from start to end.
        activation_every_seconds: an account that registers later can query from the next instant
            on.
        sampling_after_seconds: time from end to the sampling instant, at least the verifier's
            ``least_sampling_delay_seconds``: closing, handover and the last receipts must fit in.
        epsilon_acc: promise to one account for all its queries; null: it follows from ``sigma``.
        delta_acc: delta of the promise to one account.
        delta_policy: delta at which epsilon is stated for ``coalition_max`` accounts together;
            there must be a finite epsilon.
        sigma: noise in cosine units; calibrated from ``epsilon_acc`` if not given.
        relation: neighbouring relation, replace or null-replace.
        rows_per_document: how many rows a document has at most; the unit of epsilon.
        top_k_max: largest K that may be asked for.
        queries_per_account: budget r of an account.
        slots: number of accounts that can register.
        coalition_max: accounts that may pool their answers before the verdict says EXCEEDED.
        query_text_disclosure: whether texts of sampled records are shown to the verifier.
        embedder_tolerance: squared distance within which re-embeddings agree; null: 0 of a
            deterministic embedder, 4 of another. Shipped terms allow no more; for half precision
            agree on ``most_embedder_tolerance``.
        estimator: how coalitions are estimated.
        audit: how the verifier samples, and how long proving may take.
        merge_delay_seconds: a cosigned checkpoint covers every entry within this time, or the
            window fails: longer than the verifier may be away, much shorter than
            ``estimator.tau_seconds``.
        clock_skew_seconds: tolerated difference of the clocks.
        promise_life_seconds: how long a promise can be fulfilled; an expired one is superseded.
        claim_margin_seconds: no promise is made in the last seconds before the end, so that
            accounts can still claim.
        release_seconds: proofs are handed over this long after the sampling instant, so that the
            moment tells nothing; longer than proving, shorter than ``audit.deadline_seconds``.
        experiment_seed: all randomness from this text, for experiments; the verdict says WORTHLESS.
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
    """How often the background tasks look.

    Attributes:
        checkpoint_seconds: how often a grown log is signed.
        driver_seconds: how often windows are looked at.
        refresh_before_seconds: how long before an activation instant a stale index is committed to
            anew; longer than that takes.
    """

    checkpoint_seconds: float = Field(default=0.25, gt=0, le=0.3)
    driver_seconds: float = Field(default=0.25, gt=0, le=60)
    # How long before an instant a stale index is committed to anew, to be in force from then on.
    refresh_before_seconds: float = Field(default=60.0, gt=0, le=86_400)


class LimitSettings(Section):
    """What one caller may take of the service: an account, or a peer without a known key.

    Attributes:
        workers: requests worked on at a time; those that come together share one transaction.
        waiting: the most requests of one caller that may wait.
        wait_seconds: a request that would wait longer is refused.
        account_per_second: the most requests a second of one account.
        peer_per_second: the most requests a second of one peer without a known key.
    """

    workers: int = Field(default=16, ge=1, le=32)
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
    """The whole file.

    Attributes:
        provider: name in policies: 1 to 64 of a-z, 0-9, ``.``, ``-``.
        server: the address of the service.
        store: the database and the fences.
        keys: the key files.
        verifier: the verifier, and its pinned keys.
        cosigners: who cosigns beside the verifier.
        time_stamps: who stamps checkpoints.
        beacon: where rounds of a randomness beacon come from.
        backend: where the documents are read from.
        embedder: which model embeds texts.
        generator: the language model of generated answers.
        window: what a new window's policy says.
        timing: how often background tasks look.
        limits: what one caller may take.
        jobs: who commits to indexes and makes proofs.
        operation: how the service is watched.
        surfaces: the interfaces that applications speak.
    """

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
