"""What requests carry: credentials, which say who calls, and bodies.

Of bodies, unknown members and other types are refused.
"""

from typing import Annotated, Any, Literal, Self

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, model_validator
from ragaudit.encoding.errors import NotAuthenticated
from ragaudit.encoding.parameters import LIMITS
from ragaudit.encoding.text import b64_decode
from ragaudit.ledger.messages.documents import MAX_PROVEN_ROWS
from ragaudit.ledger.messages.entries import MAX_ROWS, MAX_VERSION
from ragaudit.ledger.messages.filters import MAX_FILTER_BYTES
from ragaudit.prover.service import Service
from ragaudit.prover.settings import Hex32
from ragaudit.prover.store.accounts import Account
from ragaudit.prover.surfaces.mount import Surfaces
from ragaudit.serving.exchange import note
from ragaudit.serving.settings import NAME_PATTERN

_account_scheme = HTTPBearer(
    auto_error=False, scheme_name="account", description="API key of an account"
)
_owner_scheme = HTTPBearer(
    auto_error=False, scheme_name="owner", description="API key of a tenant's owner"
)
_operator_scheme = HTTPBearer(
    auto_error=False, scheme_name="operator", description="token of the operator"
)

Credentials = HTTPAuthorizationCredentials | None


async def service(request: Request) -> Service:
    """Return the service of this application."""
    found: Service = request.app.state.service
    return found


ServiceDependency = Annotated[Service, Depends(service)]


def account(
    used: ServiceDependency, credentials: Annotated[Credentials, Depends(_account_scheme)]
) -> Account:
    """Return the account whose API key the request carries."""
    found = used.accounts.authenticate(_token(credentials))
    note(account=found.name, tenant=found.tenant)
    return found


def owner(
    used: ServiceDependency, credentials: Annotated[Credentials, Depends(_owner_scheme)]
) -> str:
    """Return the tenant whose owner's API key the request carries."""
    tenant = used.owners.authenticate(_token(credentials))
    note(owner=True, tenant=tenant)
    return tenant


OwnerDependency = Annotated[str, Depends(owner)]


def operator(
    used: ServiceDependency, credentials: Annotated[Credentials, Depends(_operator_scheme)]
) -> None:
    """Return if the request carries the operator's token."""
    used.check_operator(_token(credentials))
    note(operator=True)


AccountDependency = Annotated[Account, Depends(account)]


def acting(request: Request, caller: AccountDependency) -> Account:
    """Return the account itself, or the end user whom its request names (docs/surfaces.md)."""
    surfaces: Surfaces = request.app.state.surfaces
    found = surfaces.acting(caller, request)
    note(user=found.user)
    return found


ActingDependency = Annotated[Account, Depends(acting)]


def _token(credentials: Credentials) -> str:
    if credentials is None:
        raise NotAuthenticated(
            "no credentials", where="Authorization", expected="Bearer <key or token>"
        )
    return credentials.credentials


MAX_QUERY_CHARACTERS = 8192
MAX_COUNTER = 10**6
MAX_VECTOR_CHARACTERS = 4 * (4 * LIMITS.dimension + 2) // 3


class _Body(BaseModel):
    # Strict: "5" is no K, and a misspelt member must not fall back to its default.
    model_config = ConfigDict(extra="forbid", strict=True)


class QueryBody(_Body):
    """A plain account's query: a text, or a vector in windows that take vectors."""

    kind: Literal["text", "vector"] | None = Field(
        default=None, description="as in a request (spec 5.8); may be left out"
    )
    # In characters; the bound in bytes needs the encoded text (`check_request`).
    query: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
        examples=["How do I return a product?"],
    )
    vector: str | None = Field(
        default=None,
        max_length=MAX_VECTOR_CHARACTERS,
        description="base64 of d IEEE numbers of 32 bits, little endian, instead of query",
    )
    top_k: int = Field(ge=1, le=LIMITS.top_k, examples=[5])
    filter: str = Field(
        default="",
        max_length=MAX_FILTER_BYTES,
        description="canonical JSON over public columns (spec 5.12); empty: none",
    )

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        """Refuse both, and neither."""
        if (self.query is None) == (self.vector is None):
            raise ValueError("a query or a vector; expected one of them")
        if self.kind is not None and (self.kind == "text") != (self.vector is None):
            raise ValueError("another kind than what is asked; expected query or vector")
        return self

    @property
    def asked(self) -> str | bytes:
        """What is asked: the text, or the bytes of the vector.

        Raises:
            MalformedError: the vector is not base64.
        """
        if self.query is not None:
            return self.query
        return b64_decode(self.vector or "")


class AskBody(_Body):
    """A question to the generation channel; an anchored account's with its next counter."""

    query: str = Field(
        min_length=1, max_length=MAX_QUERY_CHARACTERS, examples=["What helps against it?"]
    )
    filter: str = Field(
        default="",
        max_length=MAX_FILTER_BYTES,
        description="canonical JSON over public columns (spec 5.12); empty: none",
    )
    counter: int | None = Field(
        default=None,
        ge=0,
        le=MAX_COUNTER,
        description="of an anchored account, which is answered at .../ask/reveal; else left out",
    )


class PromiseBody(QueryBody):
    """An anchored account's query: with the counter that it expects."""

    counter: int = Field(ge=0, le=MAX_COUNTER)


class RevealBody(_Body):
    """The nonce of a promised query."""

    counter: int = Field(ge=0, le=MAX_COUNTER)
    nonce: Hex32


class RegistrationBody(_Body):
    """What an account brings: the anchor of its nonce chain, null for a plain account, and its
    public dispute key, null for the one that is kept of the account (it may have none)."""

    anchor: Hex32 | None = None
    dispute_key: Hex32 | None = None


class DisputeKeyBody(_Body):
    """The public dispute key of an account, for windows that register it from now on."""

    dispute_key: Hex32


class NewWindowBody(_Body):
    """A window to create; members of ``overrides`` replace those of the settings' ``window``."""

    window: str = Field(pattern=NAME_PATTERN, examples=["2026-11"])
    overrides: dict[str, Any] = Field(default_factory=dict)


class NewAccountBody(_Body):
    """An account to create, perhaps with its public dispute key, or an end user of one."""

    tenant: str = Field(pattern=NAME_PATTERN)
    name: str = Field(min_length=1, max_length=127)
    user: str | None = Field(default=None, min_length=1, max_length=1024)
    dispute_key: Hex32 | None = None


class OwnedRowsBody(_Body):
    """Rows that an owner wants proven: by the ids of their documents, or by their places."""

    ids: list[Annotated[str, Field(min_length=1, max_length=512)]] | None = Field(
        default=None, min_length=1, max_length=MAX_PROVEN_ROWS, examples=[["faq-17"]]
    )
    positions: list[Annotated[int, Field(ge=0, le=MAX_ROWS - 1)]] | None = Field(
        default=None, min_length=1, max_length=MAX_PROVEN_ROWS
    )
    version: int | None = Field(
        default=None, ge=1, le=MAX_VERSION, description="left out: the one in force"
    )

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        """Refuse both, and neither."""
        if (self.ids is None) == (self.positions is None):
            raise ValueError("ids or positions; expected one of them")
        return self
