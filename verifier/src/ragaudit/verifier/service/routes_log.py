"""Handlers for what happens to the log: submissions, entries, handover, close."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.bodies import (
    MAX_PARTS,
    ClaimBody,
    CloseBody,
    CosignedBody,
    EntriesBody,
    ReceiptsBody,
    RecordsBody,
    RefusalsBody,
    StampsBody,
)
from ragaudit.ledger.messages.handover import MAX_PART_BYTES
from ragaudit.ledger.messages.identifiers import PSEUDONYM_BYTES
from ragaudit.ledger.messages.kernel import MAX_TIME
from ragaudit.ledger.messages.promises import Claimed
from ragaudit.ledger.messages.records import MAX_QUERIES
from ragaudit.serving.problems import documented
from ragaudit.verifier.service.bodies import described, octets, parse
from ragaudit.verifier.service.core import Service
from ragaudit.verifier.service.database import Origin
from ragaudit.verifier.service.dependencies import (
    AnyWindow,
    PseudonymText,
    ServiceOf,
    Signed,
    anonymous_limit,
    signed,
    signed_body,
    unsigned,
)

router = APIRouter(prefix="/v1/windows/{window}")


def _records_limit(service: Service, window: Origin) -> int:
    return service.handover.records_bytes(window)


def _part_limit(service: Service, window: Origin) -> int:
    return min(MAX_PART_BYTES, service.handover.records_bytes(window))


NoBody = Annotated[Signed, Depends(signed_body(None))]
SignedPart = Annotated[Signed, Depends(signed(_part_limit))]
PartNumber = Annotated[int, Path(ge=0, lt=MAX_PARTS, description="Of the handover, from 0.")]
SignedRecords = Annotated[Signed, Depends(signed(_records_limit))]
Json = Annotated[bytes, Depends(unsigned(anonymous_limit))]

_SUBMITTED = documented(400, 404, 409, 413, 422, 429)


@router.post("/receipts", openapi_extra=described(ReceiptsBody), responses=_SUBMITTED)
def receipts(window: AnyWindow, body: Json, service: ServiceOf) -> dict[str, int]:
    """Submit public halves of receipts, of records and of answers in words."""
    document = parse(ReceiptsBody, body)
    shown = service.handover.shown(window, document.registration)
    return service.intake.receipts(window, document, shown)


@router.post("/refusals", openapi_extra=described(RefusalsBody), responses=_SUBMITTED)
def refusals(window: AnyWindow, body: Json, service: ServiceOf) -> dict[str, int]:
    """Submit signed refusals."""
    document = parse(RefusalsBody, body)
    shown = service.handover.shown(window, document.registration)
    return service.intake.refusals(window, document, shown)


@router.post("/claims", openapi_extra=described(ClaimBody), responses=_SUBMITTED)
def claim(window: AnyWindow, body: Json, service: ServiceOf) -> dict[str, int]:
    """Submit a promise whose nonce was revealed and which was not answered."""
    document = parse(ClaimBody, body)
    shown = service.handover.shown(window, document.registration)
    return service.intake.claim(window, document, shown)


@router.get("/claims", responses=documented(400, 401, 404, 409, 425))
def claims(
    request: NoBody,
    service: ServiceOf,
    after: Annotated[
        str, Query(pattern="^([0-9a-f]{64})?$", description="The last page's next.")
    ] = "",
) -> dict[str, object]:
    """Return the claims that the provider must meet before it closes, a page at a time."""
    return service.intake.claims(request.window, hex_decode(after)).to_json()


@router.get("/claims/{pseudonym}/{counter}", responses=documented(400, 401, 404, 409, 425))
def claimed(
    pseudonym: PseudonymText,
    counter: Annotated[int, Path(ge=0, le=MAX_QUERIES)],
    made: Annotated[int, Query(ge=0, le=MAX_TIME)],
    request: NoBody,
    service: ServiceOf,
) -> dict[str, bool]:
    """Say whether a promise was claimed, once one made at ``made`` (ms) cannot be any more."""
    intake, account = service.intake, hex_decode(pseudonym, PSEUDONYM_BYTES)
    return Claimed(intake.claimed(request.window, account, counter, made)).to_json()


@router.post(
    "/entries",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=described(EntriesBody),
    responses=documented(400, 401, 404, 409, 413, 429),
)
def entries(
    request: Annotated[Signed, Depends(signed_body(EntriesBody))], service: ServiceOf
) -> None:
    """Give log entries other than records."""
    document = parse(EntriesBody, request.body.read())
    service.handover.put_entries(request.window, document.entries)


@router.post(
    "/cosigned",
    openapi_extra=described(CosignedBody),
    responses=documented(400, 401, 404, 409, 413, 422),
)
def cosigned(
    request: Annotated[Signed, Depends(signed_body(CosignedBody))], service: ServiceOf
) -> dict[str, int]:
    """Give checkpoints with the quorum of the policy's further cosigners."""
    document = parse(CosignedBody, request.body.read())
    return service.attestations.cosigned(request.window, document.checkpoints)


@router.post(
    "/time-stamps",
    openapi_extra=described(StampsBody),
    responses=documented(400, 401, 404, 409, 413, 422, 429),
)
def time_stamps(
    request: Annotated[Signed, Depends(signed_body(StampsBody))], service: ServiceOf
) -> dict[str, int]:
    """Give time stamps of checkpoints."""
    document = parse(StampsBody, request.body.read())
    return service.attestations.stamped(request.window, document.stamps)


@router.put(
    "/records",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=octets(),
    responses=documented(400, 401, 404, 409, 413, 422, 425),
)
def records(request: SignedRecords, service: ServiceOf) -> None:
    """Take the content of the whole log."""
    service.handover.put_records(request.window, request.body)


@router.put(
    "/records/parts/{part}",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=octets(),
    responses=documented(400, 401, 404, 409, 413, 422, 425, 429),
)
def records_part(part: PartNumber, request: SignedPart, service: ServiceOf) -> None:
    """Take a part of the content of the whole log."""
    service.handover.put_part(request.window, part, request.body)


@router.get("/records/parts", responses=documented(400, 401, 404, 409))
def records_parts(request: NoBody, service: ServiceOf) -> dict[str, object]:
    """Say how many parts there are, for a provider that was interrupted."""
    return service.handover.held_parts(request.window).to_json()


@router.post(
    "/records",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=described(RecordsBody),
    responses=documented(400, 401, 404, 409, 413, 422, 425, 429),
)
def records_of_parts(
    request: Annotated[Signed, Depends(signed_body(RecordsBody))], service: ServiceOf
) -> None:
    """Take the parts as the content of the whole log."""
    service.handover.put_parts(request.window, parse(RecordsBody, request.body.read()))


@router.post(
    "/close",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=described(CloseBody),
    responses=documented(400, 401, 404, 409, 413, 422, 425),
)
def close(request: Annotated[Signed, Depends(signed_body(CloseBody))], service: ServiceOf) -> None:
    """Close the log at its final checkpoint."""
    service.handover.close(request.window, parse(CloseBody, request.body.read()))
