"""What the owner of a tenant's documents may ask: what is committed to, and what is gone."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from ragaudit.prover.http.dependencies import OwnerDependency, ServiceDependency
from ragaudit.prover.http.models import OwnedRowsBody
from ragaudit.prover.http.public import WindowName
from ragaudit.serving.bodies import StrictRoute, signed_json
from ragaudit.serving.exchange import Look, note
from ragaudit.serving.problems import documented

router = APIRouter(
    prefix="/v1/owner/windows/{window}",
    route_class=StrictRoute,
    tags=["owner"],
    responses=documented("4XX", "5XX"),
)
DocumentId = Annotated[str, Query(alias="id", min_length=1, max_length=512)]


@router.post("/rows", operation_id="proveRows")
def prove_rows(
    service: ServiceDependency, tenant: OwnerDependency, window: WindowName, body: OwnedRowsBody
) -> Response:
    """Prove rows of the tenant's index, by ids or positions; canonical JSON.

    A reply holds as many of the first rows as 32 MiB do, at least one: ask for the others again.
    """
    ids, positions = body.ids or (), body.positions or ()
    note(look=Look.of(window, ids, len(positions)))
    proofs = service.owning.rows(tenant, window, body.version, ids=ids, positions=positions)
    return signed_json(proofs.encode())


@router.get("/documents", operation_id="proveDocument")
def prove_document(
    service: ServiceDependency, tenant: OwnerDependency, window: WindowName, name: DocumentId
) -> Response:
    """Prove what the closed log says of one document: never there, there, or gone since when."""
    note(look=Look.of(window, [name]))
    return signed_json(service.owning.document(tenant, window, name).encode())


@router.get("/counts", operation_id="countRows")
def count_rows(
    service: ServiceDependency, tenant: OwnerDependency, window: WindowName
) -> dict[str, Any]:
    """Show how many rows each version of the tenant's index has, and how many are null rows."""
    note(look=Look.of(window))
    return service.owning.counts(tenant, window)
