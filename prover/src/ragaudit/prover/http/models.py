"""Request bodies. Unknown members and other types are refused."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from ragaudit.encoding.parameters import LIMITS
from ragaudit.prover.settings import Hex32
from ragaudit.serving.validation import NAME_PATTERN

MAX_QUERY_CHARACTERS = 8192
MAX_COUNTER = 10**6


class _Body(BaseModel):
    # Strict: "5" is no K, and a misspelt member must not fall back to its default.
    model_config = ConfigDict(extra="forbid", strict=True)


class QueryBody(_Body):
    """A plain account's query."""

    # In characters; the bound in bytes needs the encoded text (`check_request`).
    query: str = Field(
        min_length=1, max_length=MAX_QUERY_CHARACTERS, examples=["How do I return a product?"]
    )
    top_k: int = Field(ge=1, le=LIMITS.top_k, examples=[5])
    filter: str = Field(default="", max_length=MAX_QUERY_CHARACTERS)


class PromiseBody(QueryBody):
    """An anchored account's query: with the counter that it expects."""

    counter: int = Field(ge=0, le=MAX_COUNTER)


class RevealBody(_Body):
    """The nonce of a promised query."""

    counter: int = Field(ge=0, le=MAX_COUNTER)
    nonce: Hex32


class RegistrationBody(_Body):
    """What an account brings: the anchor of its nonce chain, null for a plain account, and its
    public dispute key, null for an account that never disputes."""

    anchor: Hex32 | None = None
    dispute_key: Hex32 | None = None


class NewWindowBody(_Body):
    """A window to create; members of ``overrides`` replace those of the settings' ``window``."""

    window: str = Field(pattern=NAME_PATTERN, examples=["2026-11"])
    overrides: dict[str, Any] = Field(default_factory=dict)


class NewAccountBody(_Body):
    """An account to create."""

    tenant: str = Field(pattern=NAME_PATTERN)
    name: str = Field(min_length=1, max_length=127)
