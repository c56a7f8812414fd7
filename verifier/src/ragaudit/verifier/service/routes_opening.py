"""Handlers up to the opening of a window, the cosigner's, and the activations."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from fastapi.responses import PlainTextResponse
from ragaudit.ledger.log.cosigner_protocol import MAX_REQUEST_BYTES
from ragaudit.ledger.messages.bodies import LONGEST, OpeningBody, RoundBody, WindowBody
from ragaudit.ledger.messages.kernel import MAX_TIME
from ragaudit.serving.bodies import Body, receive, signed_json
from ragaudit.serving.problems import documented
from ragaudit.verifier.service import cosigner, releases
from ragaudit.verifier.service.authentication import demand_digest
from ragaudit.verifier.service.bodies import described, octets, parse
from ragaudit.verifier.service.capacity import MOST_VERSIONS
from ragaudit.verifier.service.core import Service
from ragaudit.verifier.service.database import Origin
from ragaudit.verifier.service.dependencies import (
    AnyWindow,
    Caller,
    ServiceOf,
    Signed,
    TenantName,
    signed,
    signed_body,
    unsigned,
)

router = APIRouter()


def _index_limit(service: Service, window: Origin) -> int:
    return service.registrar.index_bytes(window)


def _version_limit(service: Service, window: Origin) -> int:
    return service.later_versions.bytes_left(window)


def _request_limit(_service: Service) -> int:
    return MAX_REQUEST_BYTES


async def _registration_body(caller: Caller, request: Request) -> AsyncIterator[Body]:
    claim, _ = caller
    async for body in receive(request, LONGEST[WindowBody]):
        demand_digest(claim, body)
        yield body


SignedVersion = Annotated[Signed, Depends(signed(_version_limit))]
SignedIndex = Annotated[Signed, Depends(signed(_index_limit))]


@router.get("/healthz")
def healthz() -> dict[str, str]:
    """Say that the process is alive."""
    return {"status": "alive"}


@router.get("/readyz", responses=documented(503))
def readyz(service: ServiceOf) -> dict[str, str]:
    """Say that keys are loaded, store and fence agree and are writable, the clock is not behind."""
    service.database.check()
    return {"status": "ready"}


@router.get("/v1/keys")
def keys(service: ServiceOf) -> dict[str, str | int | None]:
    """Show the keys that a policy for this verifier names."""
    return service.keys.shown(service.database.now()).to_json()


@router.get("/v1/terms")
def terms(service: ServiceOf) -> Response:
    """Return the terms on which this verifier audits; their digest is in every countersignature."""
    return signed_json(service.terms.canonical)


@router.post(
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


@router.put(
    "/v1/windows/{window}/tenants/{tenant}/versions/1",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=octets(),
    responses=documented(400, 401, 404, 409, 413),
)
def put_index(tenant: TenantName, request: SignedIndex, service: ServiceOf) -> None:
    """Upload a tenant's index commitment."""
    service.registrar.put_index(request.window, tenant, request.body)


@router.put(
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


@router.post(
    "/v1/windows/{window}/countersign",
    openapi_extra=described(OpeningBody),
    responses=documented(400, 401, 404, 409, 413, 422),
)
def countersign(
    request: Annotated[Signed, Depends(signed_body(OpeningBody))], service: ServiceOf
) -> Response:
    """Check the opening and countersign it, or refuse the window."""
    document = parse(OpeningBody, request.body.read())
    return signed_json(service.registrar.countersign(request.window, document))


@router.post(
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
    body: Annotated[bytes, Depends(unsigned(_request_limit))],
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


@router.get("/v1/windows/{window}/activations/{a}", responses=documented(400, 404, 409, 425))
def get_activation(window: AnyWindow, a: int, service: ServiceOf) -> Response:
    """Return the activation a, from its instant on."""
    rounds = service.sampler.rounds
    found = releases.release_activation(service.database, service.keys, rounds, window, a)
    return signed_json(found)


@router.post(
    "/v1/windows/{window}/rounds",
    status_code=HTTPStatus.NO_CONTENT,
    openapi_extra=described(RoundBody),
    responses=documented(400, 401, 404, 409, 413, 422, 425),
)
def put_round(
    request: Annotated[Signed, Depends(signed_body(RoundBody))], service: ServiceOf
) -> None:
    """Take a round of the beacon, which the provider had first."""
    shown = parse(RoundBody, request.body.read()).round
    releases.take_round(service.database, service.sampler.rounds, request.window, shown)


@router.get(
    "/cosigner/{origin_hash}/checkpoint",
    response_class=PlainTextResponse,
    responses=documented(400, 404),
)
def latest_checkpoint(
    origin_hash: Annotated[str, Path(pattern="^[0-9a-f]{64}$")], service: ServiceOf
) -> Response:
    """Return the largest cosigned checkpoint of a log, by the SHA-256 of its origin."""
    note = cosigner.latest_note(service.database, bytes.fromhex(origin_hash))
    return Response(note, media_type=cosigner.TEXT)
