"""Settings of the surfaces: what applications reach through other interfaces, and as whom."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from ragaudit.serving.settings import NAME_PATTERN, Section, Url, beside

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
