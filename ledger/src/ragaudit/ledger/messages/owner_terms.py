"""What a policy lets the owners of documents check (docs/spec/05-records.md §5.2, §5.16)."""

from dataclasses import dataclass, field
from typing import Any, Self

from ragaudit.encoding.errors import UnsupportedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.errors import MalformedPolicy
from ragaudit.ledger.messages.fields import Fields
from ragaudit.ledger.messages.identifiers import check_tenant
from ragaudit.ledger.messages.policy_terms import (
    PolicyKeys,
    StratumTerms,
    read_decimal,
    read_stratum,
)


@dataclass(frozen=True, slots=True)
class RowTerms:
    """How the auditor samples rows (9.11).

    Attributes:
        beta: the share of bad rows that a sample is to find, a decimal below 1.
        sample: how each tenant's rows are drawn.
    """

    beta: str
    sample: StratumTerms

    def to_json(self) -> dict[str, Any]:
        """Return the member ``rows``."""
        return {"beta": self.beta, "eta": self.sample.eta, "minimum": self.sample.minimum}


@dataclass(frozen=True, slots=True)
class OwnerTerms:
    """The member ``owners``, and the owners' keys beside the tenants.

    Attributes:
        rows: None: the auditor samples none.
        keys: tenant and key of its owner, of the tenants that have one.
    """

    rows: RowTerms | None
    keys: tuple[tuple[str, PublicKey], ...] = field(default=())

    def key(self, tenant: str) -> PublicKey | None:
        """Return the key of a tenant's owner; None if the policy names none."""
        return dict(self.keys).get(tenant)


@dataclass(frozen=True, slots=True)
class Tenants:
    """The member ``tenants``: names, rising, and the keys of some of their owners."""

    names: tuple[str, ...]
    keys: tuple[tuple[str, PublicKey], ...]

    @classmethod
    def read(cls, f: Fields, keys: PolicyKeys) -> Self:
        """Return the tenants among a policy's members.

        Args:
            f: the policy; without ``owners`` no tenant has a key.
            keys: of the policy, none of which is an owner's.

        Raises:
            MalformedPolicy: names that do not rise, or a key of the policy.
            UnsupportedError: an owner's key in a policy without ``owners``.
        """
        names, owners = [], []
        for where, item in f.objects("tenants", 1, 1000):
            tenant = Fields(item, "id owner_key", MalformedPolicy, where)
            names.append(check_tenant(tenant.text("id", 1, 64)))
            if tenant.raw("owner_key") is None:
                continue
            if "owners" not in f.value:
                raise UnsupportedError("owners' keys", where=where, expected="owner_key null")
            key = tenant.public_key("owner_key")
            if role := keys.role(key):
                expected = "a key of the owner's own"
                raise tenant.error("owner_key", f"the key of keys.{role}", expected)
            owners.append((names[-1], key))
        if names != sorted(set(names)):
            raise f.error("tenants", "ids not rising and distinct")
        return cls(tuple(names), tuple(owners))

    def owned(self, f: Fields) -> OwnerTerms | None:
        """Return the terms of the member ``owners``; None in a policy without it.

        Args:
            f: the policy.

        Raises:
            MalformedPolicy: not such a member.
        """
        if "owners" not in f.value:
            return None
        owners = Fields(f.raw("owners"), "rows", MalformedPolicy, "owners")
        if owners.raw("rows") is None:
            return OwnerTerms(None, self.keys)
        r = Fields(owners.raw("rows"), "beta eta minimum", MalformedPolicy, "owners.rows")
        return OwnerTerms(RowTerms(read_decimal(r, "beta", below=1), read_stratum(r)), self.keys)
