"""Handlers for accounts that show themselves, dispute, and for the arbiter (docs/spec 8.3)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from ragaudit.ledger.messages.bodies import DisputesBody, FindingBody, StatementBody
from ragaudit.serving.bodies import json_object
from ragaudit.serving.problems import documented
from ragaudit.verifier.service.bodies import described, parse
from ragaudit.verifier.service.dependencies import (
    AnyWindow,
    ServiceOf,
    anonymous_limit,
    dispute_limit,
    unsigned,
)

router = APIRouter(prefix="/v1/windows/{window}")

Json = Annotated[bytes, Depends(unsigned(anonymous_limit))]
ReceiptFileJson = Annotated[bytes, Depends(unsigned(dispute_limit))]
LeafIndex = Annotated[int, Path(ge=0, le=2**53 - 1, description="Leaf index of the record.")]

_SUBMITTED = documented(400, 404, 409, 413, 422, 429)


def _unsampled(window: AnyWindow, index: LeafIndex, service: ServiceOf) -> None:
    """Refuse before the body is read: the verifier does not receive what it must not see."""
    service.disputes.demand_unsampled(window, index)


@router.post("/statements", openapi_extra=described(StatementBody), responses=_SUBMITTED)
def statement(window: AnyWindow, body: Json, service: ServiceOf) -> dict[str, int]:
    """Say that a registration, with its nonce chain, is one's own."""
    document = parse(StatementBody, body)
    shown = service.handover.shown(window, document.registration)
    return service.disputes.show_registration(window, document, shown)


@router.post("/disputes", openapi_extra=described(DisputesBody), responses=_SUBMITTED)
def dispute(window: AnyWindow, body: Json, service: ServiceOf) -> dict[str, int]:
    """Dispute answers, each by the digest of its receipt file."""
    document = parse(DisputesBody, body)
    shown = service.handover.shown(window, document.registration)
    return service.disputes.add(window, document, shown)


@router.get("/disputes/{index}", responses=documented(400, 404, 409, 425))
def standing(
    window: AnyWindow, index: LeafIndex, service: ServiceOf
) -> dict[str, bool | int | None]:
    """Say whether a disputed record was sampled, and which step fails as far as it was judged."""
    return service.disputes.standing(window, index).to_json()


@router.put(
    "/disputes/{index}/file",
    openapi_extra=described(None),
    responses=documented(400, 404, 409, 413, 422, 425, 429),
)
def judge(
    window: AnyWindow,
    index: LeafIndex,
    # Before ``body``: dependencies are resolved in this order, and refused means unread (8.3).
    _allowed: Annotated[None, Depends(_unsampled)],
    body: ReceiptFileJson,
    service: ServiceOf,
) -> dict[str, bool | int | None]:
    """Show the receipt file of a disputed record that was not sampled."""
    return service.disputes.judge(window, index, json_object(body)).to_json()


@router.post("/findings", openapi_extra=described(FindingBody), responses=_SUBMITTED)
def finding(window: AnyWindow, body: Json, service: ServiceOf) -> dict[str, int]:
    """Submit what the arbiter found about a disputed receipt file."""
    return service.disputes.find(window, parse(FindingBody, body))
