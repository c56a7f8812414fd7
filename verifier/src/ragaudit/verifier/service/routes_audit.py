"""Handlers for the challenge, the audit and its results."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.bodies import AccessBody, ReferenceBody
from ragaudit.ledger.messages.challenge import MAX_RESPONSE_BYTES
from ragaudit.ledger.messages.evidence_access import BUNDLE
from ragaudit.serving.bodies import SMALL_BYTES, resumable, signed_json
from ragaudit.serving.problems import documented
from ragaudit.serving.settings import NAME_PATTERN
from ragaudit.verifier.service import accesses, attached_results, evidence, retention, windows
from ragaudit.verifier.service.audit import shown_progress
from ragaudit.verifier.service.bodies import described, octets, parse
from ragaudit.verifier.service.core import Service
from ragaudit.verifier.service.database import Origin
from ragaudit.verifier.service.dependencies import (
    AnyWindow,
    PseudonymText,
    ServiceOf,
    Signed,
    TenantName,
    auditor,
    signed,
    signed_body,
    unsigned,
)

router = APIRouter(prefix="/v1/windows/{window}")

ZIP = "application/zip"
JSON_LINES = "application/jsonl"
# A report shows texts of the provider's: should one slip through as markup, nothing of it runs.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def _response_limit(_service: Service, _window: Origin) -> int:
    return MAX_RESPONSE_BYTES


def _budget_limit(service: Service, window: Origin) -> int:
    return service.sampler.budget_bytes(window)


def _replay_limit(service: Service, window: Origin) -> int:
    return service.sampler.replay_bytes(window)


def _rows_limit(service: Service, window: Origin) -> int:
    return service.sampler.rows_bytes(window)


def _small(_service: Service) -> int:
    return SMALL_BYTES


NoBody = Annotated[Signed, Depends(signed_body(None))]
SignedResponse = Annotated[Signed, Depends(signed(_response_limit))]
SignedBudget = Annotated[Signed, Depends(signed(_budget_limit))]
SignedReplay = Annotated[Signed, Depends(signed(_replay_limit))]
SignedRows = Annotated[Signed, Depends(signed(_rows_limit))]
SmallBody = Annotated[bytes, Depends(unsigned(_small))]
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
    reference = attached_results.attach(service.database, window, name, said)
    return signed_json(reference.encode())


@router.get("/test-results", dependencies=[Depends(auditor)], responses=documented(400, 401, 404))
def list_test_results(window: AnyWindow, service: ServiceOf) -> list[dict[str, Any]]:
    """List the test results that the verdict refers to, or will."""
    with service.database.read() as connection:
        windows.get(connection, window)
        return [each.to_json() for each in attached_results.of(connection, window)]


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
    access = accesses.record(service.database, service.keys, window, BUNDLE, said)
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
    accesses.record(service.database, service.keys, window, f"account/{pseudonym}", said)
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
        return [access.to_json() for access in accesses.listed(connection, window)]
