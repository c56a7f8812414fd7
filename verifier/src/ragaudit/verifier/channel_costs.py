"""What the generation channel of a policy costs a document (docs/spec/10-verdict.md §10.10)."""

from fractions import Fraction
from typing import Final

from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.ledger.messages.answerers import KeywordVoting
from ragaudit.ledger.messages.policy import Policy
from ragaudit.privacy.accounting.generation import (
    ChannelCosts,
    ChannelEpsilon,
    KeywordChannelEpsilon,
    Loss,
)

__all__ = ["channel_costs", "largest_loss", "loss_under"]

_DRAWS: Final = 2
"""Coins of one token at most: the test, and the choice."""


def channel_costs(policy: Policy, charges: int) -> ChannelCosts:
    """Return what the channel costs, as policy and log have it.

    Args:
        policy: with a generation channel.
        charges: entries of the log; 0 before the window, when no coin is drawn yet.
    """
    terms = policy.generation
    assert terms is not None
    answerer = terms.answerer
    if isinstance(answerer, KeywordVoting):
        return KeywordChannelEpsilon(
            uses=terms.uses,
            epsilon_choice=answerer.epsilon_choice,
            sigma=answerer.sigma,
            delta_test=answerer.delta_test,
            delta_conversion=answerer.delta_conversion,
            # The permutation, the choice and the test.
            draws=charges * (answerer.voters + 1),
        )
    bins = 0 if terms.adaptive is None else len(terms.adaptive.edges)
    # The counts, the threshold of a vote, the permutation, and what each token may draw.
    each = bins + 1 + (answerer.slots - 1) + _DRAWS * answerer.tokens
    return ChannelEpsilon(
        mechanism=terms.mechanism,
        uses=terms.uses,
        question=terms.epsilon,
        group=policy.rows_per_document,
        draws=charges * each,
        private=min(answerer.tokens, int(terms.answer_epsilon / answerer.epsilon_token)),
    )


def largest_loss(policy: Policy) -> Loss:
    """Return what all answers of a window tell of one document that is replaced, at most.

    All factors are in: uses, rows of a document, and that two documents are replaced by each other.

    Args:
        policy: any; without a generation channel nothing is lost.
    """
    return loss_under(policy, NeighboringRelation.REPLACE)


def loss_under(policy: Policy, relation: str) -> Loss:
    """Return what all answers of a window tell of one document, at most.

    Args:
        policy: any; without a generation channel nothing is lost.
        relation: what becomes of the document.
    """
    if policy.generation is None:
        return Loss(Fraction(0), Fraction(0))
    costs = channel_costs(policy, 0)
    replaced = relation == NeighboringRelation.REPLACE
    loss = costs.replace_one if replaced else costs.replace_one_null
    return loss if isinstance(loss, Loss) else Loss(loss, Fraction(0))
