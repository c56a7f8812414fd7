"""The sample of charge entries of the generation channel (docs/spec/09-audit.md §9.1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragaudit.privacy.sample import DrawnStratum, LoggedRecord, SamplingRule, Stratum, StratumRule
from ragaudit.privacy.sample import draw as draw_stratum

__all__ = ["CHARGES", "charge_stratum_id", "draw_charges"]

CHARGES = "charges:"
"""What the ids of these strata begin with."""


@dataclass(frozen=True, slots=True)
class _Whole:
    """A rule by which strata are taken whole, else as another one says."""

    rule: SamplingRule
    mode: str = "A"

    @property
    def beta(self) -> str:
        return self.rule.beta

    @property
    def tenants(self) -> StratumRule:
        return self.rule.tenants

    @property
    def submitters(self) -> StratumRule:
        return self.rule.submitters

    @property
    def submitters_by(self) -> str:
        return self.rule.submitters_by


def charge_stratum_id(tenant: str) -> str:
    """Return the id of the stratum with all charge entries of a tenant."""
    return f"{CHARGES}{tenant}"


def draw_charges(
    charges: Iterable[LoggedRecord],
    *,
    tenants: Sequence[str],
    rule: SamplingRule,
    whole: bool,
    seed: bytes,
) -> tuple[DrawnStratum, ...]:
    """Return one stratum of charge entries for each tenant, with its sample.

    Args:
        charges: all charge entries of the log, in its order.
        tenants: the policy's, in its order; each has a stratum, even an empty one.
        rule: the policy's; strata are drawn as those of a tenant's records.
        whole: whether the policy has all charge entries proven.
        seed: of `sampling_seed`.
    """
    of_tenants: dict[str, list[int]] = {tenant: [] for tenant in tenants}
    for charge in charges:
        if charge.tenant in of_tenants:
            of_tenants[charge.tenant].append(charge.index)
    drawn_by: SamplingRule = _Whole(rule) if whole else rule
    return tuple(
        draw_stratum(seed, drawn_by, Stratum(charge_stratum_id(tenant), tuple(found), rule.tenants))
        for tenant, found in of_tenants.items()
    )
