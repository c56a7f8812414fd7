"""The sample of the rows of each tenant's index (docs/spec/09-audit.md §9.11).

The verifier draws with `draw_rows`, the prover recomputes the draw before it opens a row.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from ragaudit.encoding.text import parse_decimal
from ragaudit.privacy.sample import (
    DrawnStratum,
    Stratum,
    StratumRule,
    order,
    sample_size_unbounded,
    stratum_size,
)

__all__ = [
    "MOST_SAMPLED",
    "ROWS",
    "RowRule",
    "draw_rows",
    "largest_sample",
    "row_sample_size",
    "row_stratum_id",
]

ROWS: Final = "rows:"
"""What the ids of these strata begin with."""

MOST_SAMPLED: Final = 4096
"""Rows of one tenant, whatever the policy: a response opens each with its whole text."""


class RowRule(Protocol):
    """The policy's ``owners.rows``, as `ragaudit.ledger.messages.owner_terms.RowTerms` holds it."""

    @property
    def beta(self) -> str:
        """Return the share of bad rows that a sample is to find, a decimal in (0, 1)."""

    @property
    def sample(self) -> StratumRule:
        """Return the rule of each tenant's stratum."""


def row_stratum_id(tenant: str) -> str:
    """Return the id of the stratum with all positions of a tenant's index."""
    return f"{ROWS}{tenant}"


def row_sample_size(rows: int, rule: RowRule) -> int:
    """Return how many of ``rows`` rows are sampled, whatever the audit's mode.

    Args:
        rows: N.
        rule: the policy's.

    Raises:
        MalformedError: the rule's decimals.
    """
    return stratum_size(rows, parse_decimal(rule.beta), rule.sample)


def largest_sample(rule: RowRule) -> int:
    """Return how many rows a sample has at most, however large the index.

    A beta above 1/2, which no terms allow, takes small indexes whole beside that.

    Args:
        rule: the policy's.

    Raises:
        MalformedError: the rule's decimals.
    """
    bound = sample_size_unbounded(parse_decimal(rule.beta), parse_decimal(rule.sample.eta))
    return max(bound, rule.sample.minimum)


def draw_rows(rows: Mapping[str, int], *, rule: RowRule, seed: bytes) -> tuple[DrawnStratum, ...]:
    """Return one stratum of positions for each tenant, with its sample.

    Args:
        rows: N of the last version of each tenant's index, in the policy's order.
        rule: the policy's.
        seed: of `sampling_seed`.

    Raises:
        MalformedError: the rule's decimals.
    """
    drawn = []
    for tenant, count in rows.items():
        # A range, not a list: of a large index only the sample is held.
        stratum = Stratum(row_stratum_id(tenant), range(count), rule.sample)
        chosen = order(seed, stratum.id, stratum.population, row_sample_size(count, rule))
        drawn.append(DrawnStratum(stratum, tuple(sorted(chosen))))
    return tuple(drawn)
