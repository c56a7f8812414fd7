"""Settings of what others look at: which records and rows a verifier samples, and owners' keys."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from ragaudit.serving.settings import DECIMAL_PATTERN, HEX32_PATTERN, NAME_PATTERN, Section


def _decimal_text(value: object) -> object:
    """YAML reads 2 and 1 as numbers; an exact integer is a decimal, a float is not."""
    return str(value) if type(value) is int else value


Decimal = Annotated[
    str,
    BeforeValidator(_decimal_text),
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
