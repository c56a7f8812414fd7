"""Responses to a challenge: docs/spec/08-services.md §8.5."""

from ragaudit.ledger.messages.challenge import Response
from ragaudit.ledger.messages.requests import Openings
from ragaudit.ledger.messages.seed_commitments import KeyOpening
from ragaudit.prover.window.open_window import OpenWindow

__all__ = ["response"]


def response(
    live: OpenWindow, index: int, openings: Openings, *, key: KeyOpening, proof: bytes
) -> bytes:
    """Return the encoded response for a sampled record or charge entry.

    Args:
        index: its place in the log.
        openings: of its digests.
        key: opens its noise key.
        proof: its argument; empty where another response has that of its group.
    """
    # The verifier gets the embedding in any case, the text only as the policy says.
    disclosed = live.policy.query_text_disclosure == "sampled"
    return Response(
        index=index,
        key=key,
        salt_q=openings.salt_q if disclosed else None,
        query=openings.question.data if disclosed else None,
        salt_e=openings.salt_e,
        embedding=openings.embedding,
        salt_f=openings.salt_f,
        filter=openings.filter.encode(),
        salt_s=openings.salt_s,
        sketch=openings.sketch,
        proof=proof,
    ).encode()
