"""Handlers of the requests, in the order of a window's life.

Up to the opening; the cosigner's and the activations; what happens to the log (submissions,
entries, handover, close); disputes; the challenge, the audit and its results.
"""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.log.cosigner_protocol import MAX_REQUEST_BYTES, TEXT
from ragaudit.ledger.messages.bodies import (
    LONGEST,
    MAX_PARTS,
    AccessBody,
    ClaimBody,
    CloseBody,
    CosignedBody,
    DisputesBody,
    EntriesBody,
    FindingBody,
    OpeningBody,
    ReceiptsBody,
    RecordsBody,
    ReferenceBody,
    RefusalsBody,
    RoundBody,
    StampsBody,
    StatementBody,
    WindowBody,
)
from ragaudit.ledger.messages.challenge import MAX_RESPONSE_BYTES
from ragaudit.ledger.messages.custody import BUNDLE
from ragaudit.ledger.messages.entries import MAX_QUERIES
from ragaudit.ledger.messages.handover import MAX_PART_BYTES
from ragaudit.ledger.messages.identifiers import PSEUDONYM_BYTES
from ragaudit.ledger.messages.kernel import MAX_TIME
from ragaudit.ledger.messages.promises import Claimed
from ragaudit.serving.bodies import SMALL_BYTES, Body, json_object, receive, resumable, signed_json
from ragaudit.serving.problems import documented
from ragaudit.serving.settings import NAME_PATTERN
from ragaudit.verifier.service import cosigner, evidence, retention, windows
from ragaudit.verifier.service.audit import shown_progress
from ragaudit.verifier.service.bodies import described, octets, parse
from ragaudit.verifier.service.capacity import MOST_VERSIONS
from ragaudit.verifier.service.challenge import release_activation, take_round
from ragaudit.verifier.service.dependencies import (
    AnyWindow,
    Caller,
    PseudonymText,
    ServiceOf,
    Signed,
    TenantName,
    auditor,
    signed,
    signed_body,
    unsigned,
)
from ragaudit.verifier.service.providers import demand_digest

opening = APIRouter()


async def _registration_body(caller: Caller, request: Request) -> AsyncIterator[Body]:
    claim, _ = caller
    async for body in receive(request, LONGEST[WindowBody]):
        demand_digest(claim, body)
        yield body


SignedVersion = Annotated[
    Signed, signed(lambda service, window: service.later_versions.bytes_left(window))
]
SignedIndex = Annotated[
    Signed, signed(lambda service, window: service.registrar.index_bytes(window))
]


@opening.get("/healthz")
def healthz() -> dict[str, str]:
    """Say that the process is alive."""
    return {"status": "alive"}


@opening.get("/readyz", responses=documented(503))
def readyz(service: ServiceOf) -> dict[str, str]:
    """Say that keys are loaded, store and fence agree and are writable, the clock is not behind."""
    service.database.check()
    return {"status": "ready"}


@opening.get("/v1/keys")
def keys(service: ServiceOf) -> dict[str, str | int | None]:
    """Show the keys that a policy for this verifier names."""
    return service.keys.shown(service.database.now()).to_json()


@opening.get("/v1/terms")
def terms(service: ServiceOf) -> Response:
    """Return the terms on which this verifier audits; their digest is in every countersignature."""
    return signed_json(service.terms.canonical)


@opening.post(
    "/v1/windows",
    status_code=HTTPStatus.CREATED,
    openapi_extra=described(WindowBody),
    responses={200: {"description": "Registered before."}, **documented(400, 401, 409, 413, 422)},
)
def register(
    caller: Caller,
    body: Annotated[Body, Depends(_registration_body)],
    service: ServiceOf,
    response: Response,
) -> dict[str, str]:
    """Register a window."""
    _, provider = caller
    document = parse(WindowBody, body.read())
    window, new = service.registrar.register(provider, document)
    response.status_code = HTTPStatus.CREATED if new else HTTPStatus.OK
    return {
        "window": window.name,
        "state": window.state,
        "policy_digest": window.policy_digest.hex(),
    }


@opening.put(
    "/v1/windows/{window}/tenants/{tenant}/versions/1",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=octets(),
    responses=documented(400, 401, 404, 409, 413),
)
def put_index(tenant: TenantName, request: SignedIndex, service: ServiceOf) -> None:
    """Upload a tenant's index commitment."""
    service.registrar.put_index(request.window, tenant, request.body)


@opening.put(
    "/v1/windows/{window}/tenants/{tenant}/versions/{version}",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=octets(),
    responses=documented(400, 401, 404, 409, 413, 422),
)
def put_version(
    tenant: TenantName,
    version: Annotated[int, Path(ge=2, le=MOST_VERSIONS + 1)],
    request: SignedVersion,
    service: ServiceOf,
) -> None:
    """Upload a later version of a tenant's index commitment, while the window runs."""
    service.later_versions.put(request.window, tenant, version, request.body)


@opening.post(
    "/v1/windows/{window}/countersign",
    openapi_extra=described(OpeningBody),
    responses=documented(400, 401, 404, 409, 413, 422),
)
def countersign(
    request: Annotated[Signed, signed_body(OpeningBody)], service: ServiceOf
) -> Response:
    """Check the opening and countersign it, or refuse the window."""
    document = parse(OpeningBody, request.body.read())
    return signed_json(service.registrar.countersign(request.window, document))


@opening.post(
    "/cosigner/add-checkpoint",
    openapi_extra=octets("text/plain"),
    responses={
        status: {"description": text, "content": {kind: {"schema": {"type": "string"}}}}
        for status, text, kind in (
            (200, "Cosignature lines.", "text/plain"),
            (400, "Malformed, or the old size above the new one.", "text/plain"),
            (403, "Not signed by the window's log, or no longer cosigned.", "text/plain"),
            (404, "Unknown origin.", "text/plain"),
            (409, "Another old size; the body is the right one.", "text/x.tlog.size"),
            (422, "Inconsistent with what was cosigned.", "text/plain"),
            (429, "Too many checkpoints.", "text/plain"),
            (503, "The head was read longer ago than the policy's skew.", "text/plain"),
        )
    },
)
def add_checkpoint(
    body: Annotated[bytes, unsigned(lambda _: MAX_REQUEST_BYTES)],
    service: ServiceOf,
    ragaudit_time: Annotated[int | None, Header(ge=0, le=MAX_TIME)] = None,
) -> Response:
    """Cosign a checkpoint (C2SP tlog-witness); the header says when its head was read."""
    cap = service.settings.limits.checkpoints
    answer = cosigner.add_checkpoint(
        service.database, service.keys.cosigner, body, cap=cap, read=ragaudit_time
    )
    # As a header: to a media type of text the framework would add a character set.
    return Response(answer.body, answer.status, {"Content-Type": answer.content_type})


@opening.get("/v1/windows/{window}/activations/{a}", responses=documented(400, 404, 409, 425))
def get_activation(window: AnyWindow, a: int, service: ServiceOf) -> Response:
    """Return the activation a, from its instant on."""
    rounds = service.sampler.rounds
    found = release_activation(service.database, service.keys, rounds, window, a)
    return signed_json(found)


@opening.post(
    "/v1/windows/{window}/rounds",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=described(RoundBody),
    responses=documented(400, 401, 404, 409, 413, 422, 425),
)
def put_round(request: Annotated[Signed, signed_body(RoundBody)], service: ServiceOf) -> None:
    """Take a round of the beacon, which the provider had first."""
    shown = parse(RoundBody, request.body.read()).round
    take_round(service.database, service.sampler.rounds, request.window, shown)


@opening.get(
    "/cosigner/{origin_hash}/checkpoint",
    response_class=PlainTextResponse,
    responses=documented(400, 404),
)
def latest_checkpoint(
    origin_hash: Annotated[str, Path(pattern="^[0-9a-f]{64}$")], service: ServiceOf
) -> Response:
    """Return the largest cosigned checkpoint of a log, by the SHA-256 of its origin."""
    note = cosigner.latest_note(service.database, bytes.fromhex(origin_hash))
    return Response(note, media_type=TEXT)


router = APIRouter(prefix="/v1/windows/{window}")


NoBody = Annotated[Signed, signed_body(None)]
SignedPart = Annotated[
    Signed,
    signed(lambda service, window: min(MAX_PART_BYTES, service.handover.records_bytes(window))),
]
PartNumber = Annotated[int, Path(ge=0, lt=MAX_PARTS, description="Of the handover, from 0.")]
SignedRecords = Annotated[
    Signed, signed(lambda service, window: service.handover.records_bytes(window))
]
Json = Annotated[bytes, unsigned(lambda service: service.settings.limits.anonymous_bytes)]

_SUBMITTED = documented(400, 404, 409, 413, 422, 429)


@router.post("/receipts", openapi_extra=described(ReceiptsBody), responses=_SUBMITTED)
def receipts(window: AnyWindow, body: Json, service: ServiceOf) -> dict[str, int]:
    """Submit public parts of receipts, of records and of generated answers."""
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
def entries(request: Annotated[Signed, signed_body(EntriesBody)], service: ServiceOf) -> None:
    """Give log entries other than records."""
    document = parse(EntriesBody, request.body.read())
    service.handover.put_entries(request.window, document.entries)


@router.post(
    "/cosigned",
    openapi_extra=described(CosignedBody),
    responses=documented(400, 401, 404, 409, 413, 422),
)
def cosigned(
    request: Annotated[Signed, signed_body(CosignedBody)], service: ServiceOf
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
    request: Annotated[Signed, signed_body(StampsBody)], service: ServiceOf
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
    request: Annotated[Signed, signed_body(RecordsBody)], service: ServiceOf
) -> None:
    """Take the parts as the content of the whole log."""
    service.handover.put_parts(request.window, parse(RecordsBody, request.body.read()))


@router.post(
    "/close",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=described(CloseBody),
    responses=documented(400, 401, 404, 409, 413, 422, 425),
)
def close(request: Annotated[Signed, signed_body(CloseBody)], service: ServiceOf) -> None:
    """Close the log at its final checkpoint."""
    service.handover.close(request.window, parse(CloseBody, request.body.read()))


ReceiptFileJson = Annotated[bytes, unsigned(lambda service: service.settings.limits.dispute_bytes)]
RecordIndex = Annotated[int, Path(ge=0, le=2**53 - 1, description="Leaf index of the record.")]


def _unsampled(window: AnyWindow, index: RecordIndex, service: ServiceOf) -> None:
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
    window: AnyWindow, index: RecordIndex, service: ServiceOf
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
    index: RecordIndex,
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


ZIP = "application/zip"
JSON_LINES = "application/jsonl"
# A report shows texts of the provider's: should one slip through as markup, nothing of it runs.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


SignedResponse = Annotated[Signed, signed(lambda *_: MAX_RESPONSE_BYTES)]
SignedBudget = Annotated[
    Signed, signed(lambda service, window: service.sampler.budget_bytes(window))
]
SignedReplay = Annotated[
    Signed, signed(lambda service, window: service.sampler.replay_bytes(window))
]
SignedRows = Annotated[Signed, signed(lambda service, window: service.sampler.rows_bytes(window))]
SmallBody = Annotated[bytes, unsigned(lambda _: SMALL_BYTES)]
ResultName = Annotated[str, Path(pattern=NAME_PATTERN, description="Of a test result.")]
AccessNumber = Annotated[int, Path(ge=0, le=2**31 - 1, description="Of an evidence access.")]
_RANGES: dict[int | str, dict[str, Any]] = {
    206: {"description": "The rest, from the byte that `Range: bytes=<first>-` names."},
    416: {"description": "There is no such byte."},
}
LeafIndex = Annotated[int, Path(ge=0, le=2**63 - 1, description="A leaf index of the log.")]


@router.get("/challenge", responses=documented(400, 401, 404, 409, 425))
def challenge(request: NoBody, service: ServiceOf) -> Response:
    """Return the challenge, from the sampling instant on."""
    return signed_json(service.sampler.challenge(request.window))


@router.put(
    "/challenge/{index}",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=octets(),
    responses=documented(400, 401, 404, 409, 413),
)
def respond(index: LeafIndex, request: SignedResponse, service: ServiceOf) -> None:
    """Answer the challenge for one sampled record."""
    service.sampler.respond(request.window, index, request.body)


@router.put(
    "/challenge/budgets/{tenant}",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=octets(),
    responses=documented(400, 401, 404, 409, 413),
)
def put_budget(tenant: TenantName, request: SignedBudget, service: ServiceOf) -> None:
    """Hand over the budget argument of a tenant's charge entries."""
    service.sampler.put_budget(request.window, tenant, request.body)


@router.put(
    "/challenge/replays/{index}",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=octets(),
    responses=documented(400, 401, 404, 409, 413),
)
def put_replay(index: LeafIndex, request: SignedReplay, service: ServiceOf) -> None:
    """Open what the answer to a sampled charge entry was made of."""
    service.sampler.put_replay(request.window, index, request.body)


@router.put(
    "/challenge/rows/{tenant}",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=octets(),
    responses=documented(400, 401, 404, 409, 413),
)
def put_rows(tenant: TenantName, request: SignedRows, service: ServiceOf) -> None:
    """Open the sampled rows of a tenant's index."""
    service.sampler.put_rows(request.window, tenant, request.body)


@router.post(
    "/audit",
    status_code=HTTPStatus.ACCEPTED,
    dependencies=[Depends(auditor)],
    responses=documented(400, 401, 404, 409),
)
def audit(window: AnyWindow, service: ServiceOf) -> dict[str, Any]:
    """Start the audit, or start a failed one again."""
    service.runner.request(window)
    return shown_progress(service.database, service.runner, window)


@router.put(
    "/test-results/{name}",
    dependencies=[Depends(auditor)],
    openapi_extra=described(ReferenceBody),
    responses=documented(400, 401, 404, 409, 413, 422, 429),
)
def put_test_result(
    window: AnyWindow, name: ResultName, body: SmallBody, service: ServiceOf
) -> Response:
    """Have the verdict refer to a signed test result, which is verified first."""
    said = parse(ReferenceBody, body)
    reference = evidence.attach(service.database, window, name, said)
    return signed_json(reference.encode())


@router.get("/test-results", dependencies=[Depends(auditor)], responses=documented(400, 401, 404))
def list_test_results(window: AnyWindow, service: ServiceOf) -> list[dict[str, Any]]:
    """List the test results that the verdict refers to, or will."""
    with service.database.read() as connection:
        windows.get(connection, window)
        return [each.to_json() for each in evidence.attached_results(connection, window)]


@router.get("", responses=documented(400, 404))
def status(window: AnyWindow, service: ServiceOf) -> dict[str, Any]:
    """Show state, times and counts."""
    return evidence.status(service.database, service.auditor, service.sampler, window)


@router.get("/progress", responses=documented(400, 404))
def progress(window: AnyWindow, service: ServiceOf) -> dict[str, Any]:
    """Show where the audit stands."""
    return shown_progress(service.database, service.runner, window)


@router.get("/verdict", responses=documented(400, 404))
def verdict(window: AnyWindow, service: ServiceOf) -> Response:
    """Return the signed verdict."""
    return signed_json(evidence.verdict(service.database, window))


@router.get("/report.html", response_class=HTMLResponse, responses=documented(400, 404))
def report_html(window: AnyWindow, service: ServiceOf) -> HTMLResponse:
    """Return the report, for people."""
    page = service.auditor.report_html(evidence.verdict(service.database, window))
    return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})


@router.get("/report.txt", response_class=PlainTextResponse, responses=documented(400, 404))
def report_text(window: AnyWindow, service: ServiceOf) -> PlainTextResponse:
    """Return the report as plain text."""
    return PlainTextResponse(
        service.auditor.report_text(evidence.verdict(service.database, window))
    )


@router.get("/bundle", response_class=StreamingResponse, responses=documented(400, 404) | _RANGES)
def public_bundle(window: AnyWindow, request: Request, service: ServiceOf) -> Response:
    """Return the public part of the evidence, for anyone's re-check, or the rest of it."""
    return resumable(service.bundles.find(window, "public"), request.headers, ZIP, {})


@router.post(
    "/bundle/confidential",
    response_class=StreamingResponse,
    dependencies=[Depends(auditor)],
    openapi_extra=described(AccessBody),
    responses=documented(400, 401, 404, 413),
)
def confidential_bundle(window: AnyWindow, body: SmallBody, service: ServiceOf) -> Response:
    """Open all of the evidence, for regulators bound by confidentiality; who and why is kept.

    An interrupted download goes on at the path in `Content-Location`.
    """
    said = parse(AccessBody, body)
    # For what they raise: nothing is opened then.
    evidence.verdict(service.database, window)
    retention.check_kept(service.database, window)
    access = evidence.record_access(service.database, service.keys, window, BUNDLE, said)
    whole = service.bundles.find(window, "all")
    place = service.bundles.place(window, access.number)
    return resumable(whole, {}, ZIP, {"Content-Location": place})


@router.get(
    "/bundle/confidential/{number}",
    response_class=StreamingResponse,
    dependencies=[Depends(auditor)],
    responses=documented(400, 401, 404) | _RANGES,
)
def opened_bundle(
    window: AnyWindow, number: AccessNumber, request: Request, service: ServiceOf
) -> Response:
    """Go on with the download of all evidence that an access opened within the last day."""
    retention.check_kept(service.database, window)
    service.bundles.demand_opened(window, number)
    return resumable(service.bundles.find(window, "all"), request.headers, ZIP, {})


@router.post(
    "/accounts/{pseudonym}",
    response_class=StreamingResponse,
    dependencies=[Depends(auditor)],
    openapi_extra=described(AccessBody),
    responses=documented(400, 401, 404, 413),
)
def account(
    window: AnyWindow, pseudonym: PseudonymText, body: SmallBody, service: ServiceOf
) -> Response:
    """Open everything that the evidence holds of one account; who and why is kept."""
    said = parse(AccessBody, body)
    retention.check_kept(service.database, window)
    found = evidence.account(service.database, window, hex_decode(pseudonym))
    evidence.record_access(service.database, service.keys, window, f"account/{pseudonym}", said)
    return StreamingResponse(found, media_type=JSON_LINES)


@router.get("/deletion", responses=documented(400, 404))
def show_deletion(window: AnyWindow, service: ServiceOf) -> Response:
    """Return the statement that the confidential evidence was deleted."""
    return signed_json(retention.shown(service.database, window))


@router.get("/accesses", dependencies=[Depends(auditor)], responses=documented(400, 401, 404))
def list_accesses(window: AnyWindow, service: ServiceOf) -> list[dict[str, Any]]:
    """List who opened confidential evidence of the window, when and why."""
    with service.database.read() as connection:
        windows.get(connection, window)
        return [access.to_json() for access in evidence.list_accesses(connection, window)]
