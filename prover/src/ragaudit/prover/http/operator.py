"""Routes of the operator, under the operator's token, and of the owners of documents."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response, status
from ragaudit.encoding.errors import MalformedRequest
from ragaudit.encoding.text import hex_decode
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.http.public import WindowName
from ragaudit.prover.http.requests import (
    DisputeKeyBody,
    NewAccountBody,
    NewWindowBody,
    OwnedRowsBody,
    OwnerDependency,
    ServiceDependency,
    operator,
)
from ragaudit.prover.lifecycle.retention import count_accesses, deletion_of
from ragaudit.prover.service import Service
from ragaudit.prover.store import tables
from ragaudit.prover.store.states import State
from ragaudit.prover.window.records import count_records
from ragaudit.prover.window.windows import Window
from ragaudit.serving.bodies import StrictRoute, signed_json
from ragaudit.serving.exchange import Look, note
from ragaudit.serving.problems import documented
from ragaudit.serving.settings import NAME_PATTERN
from sqlalchemy import func, select

router = APIRouter(
    prefix="/v1/operator",
    tags=["operator"],
    dependencies=[Depends(operator)],
    route_class=StrictRoute,
    responses=documented("4XX", "5XX"),
)

TenantName = Annotated[str, Path(pattern=NAME_PATTERN)]
AccountName = Annotated[str, Path(min_length=1, max_length=127)]


@router.post("/windows", operation_id="createWindow", status_code=status.HTTP_201_CREATED)
def create_window(service: ServiceDependency, body: NewWindowBody) -> dict[str, Any]:
    """Create a window from the settings and overrides; it then opens by itself."""
    window = service.create_window(body.window, body.overrides)
    return window_status(service, window)


@router.get("/windows", operation_id="listWindowStatus")
def list_window_status(service: ServiceDependency) -> list[dict[str, Any]]:
    """Show where every window stands, in order of creation."""
    return [window_status(service, window) for window in service.windows.all()]


@router.get("/windows/{window}", operation_id="getWindowStatus")
def get_window_status(service: ServiceDependency, window: WindowName) -> dict[str, Any]:
    """Show where a window stands: state, what it is busy with, accounts, records."""
    return window_status(service, service.windows.get(window))


@router.post("/windows/{window}/close", operation_id="closeWindow")
def close_window(service: ServiceDependency, window: WindowName) -> dict[str, Any]:
    """Stop answering now; claims, close entry and handover wait for the window's end."""
    return window_status(service, service.stop_window(window))


@router.post("/windows/{window}/abandon", operation_id="abandonWindow")
def abandon_window(service: ServiceDependency, window: WindowName) -> dict[str, Any]:
    """End a window that is not countersigned yet; its documents are free again."""
    return window_status(service, service.abandon_window(window))


@router.post("/windows/{window}/delete", operation_id="deleteWindow")
def delete_window(service: ServiceDependency, window: WindowName) -> dict[str, Any]:
    """Delete everything but the public part of a finished window; the service does it by itself."""
    service.retention.state(window)
    return window_status(service, service.windows.get(window))


@router.post("/windows/{window}/tenants/{tenant}/refresh", operation_id="refreshIndex")
def refresh_index(
    service: ServiceDependency, window: WindowName, tenant: TenantName
) -> dict[str, Any]:
    """Commit to a tenant's documents as they are now; in force from the next instant on."""
    version = service.refresher.refresh(window, tenant)
    return {"window": window, "tenant": tenant, "version": version}


@router.get("/accounts", operation_id="listAccounts")
def list_accounts(service: ServiceDependency) -> list[dict[str, str]]:
    """List all accounts and end users, by tenant and names."""
    return [account.to_json() for account in service.accounts.all()]


@router.post("/accounts", operation_id="createAccount", status_code=status.HTTP_201_CREATED)
def create_account(service: ServiceDependency, body: NewAccountBody) -> dict[str, str]:
    """Create an account, whose API key is shown this one time; or an end user, who has none."""
    dispute_key = None if body.dispute_key is None else hex_decode(body.dispute_key)
    if body.user is not None:
        if dispute_key is not None:
            raise MalformedRequest(
                "an end user has that of the account", where="dispute_key", expected="no user"
            )
        made = service.accounts.add_end_user(body.name, body.user, tenant=body.tenant)
        return made.to_json()
    key = service.accounts.add(body.tenant, body.name, dispute_key)
    return {"tenant": body.tenant, "name": body.name, "key": key}


@router.post("/accounts/{name}/key", operation_id="rotateKey")
def rotate_key(service: ServiceDependency, name: AccountName) -> dict[str, str]:
    """Replace an account's API key; the old one is dead at once."""
    return {"name": name, "key": service.accounts.rotate_key(name)}


@router.put("/accounts/{name}/dispute-key", operation_id="replaceDisputeKey")
def replace_dispute_key(
    service: ServiceDependency, name: AccountName, body: DisputeKeyBody
) -> dict[str, str]:
    """Keep an account's public dispute key in place of any other, for windows to come."""
    account = service.accounts.named(name)
    service.accounts.keep_dispute_key(account, hex_decode(body.dispute_key), over=True)
    return {"name": name, "dispute_key": body.dispute_key}


def _next_release(service: Service, window: Window) -> int:
    """The first instant whose value is needed, and was not taken over."""
    activations = Policy.parse(window.policy).activations
    if window.challenge is not None:
        return activations + 1
    # An activation that comes when the window is closed is none of ours; the sample needs it.
    if window.state is State.CLOSED:
        return activations
    return len(service.windows.activations(window.name)) + 1


def window_status(service: Service, window: Window) -> dict[str, Any]:
    """Return where a window stands. Times are Unix seconds."""
    policy = Policy.parse(window.policy)
    busy = service.driver.progress.get(window.name)
    registration = tables.registration
    with service.store.read() as connection:
        accounts = connection.scalar(
            select(func.count()).where(registration.c.window == window.name)
        )
        records = count_records(connection, window.name)
        stated = deletion_of(connection, window.name)
        accesses = count_accesses(connection, window.name)
    return {
        "window": window.name,
        "state": window.state,
        "start": policy.start,
        "end": policy.end,
        "sampling_instant": policy.sampling_instant,
        "privacy": "gaussian" if policy.noised else "none",
        "sigma": policy.sigma if policy.noised else None,
        "tenants": list(policy.tenants),
        "accounts": accounts,
        "records": records,
        "accesses": accesses,
        "unusable": window.unusable,
        "stopped": window.stopped,
        "handed_over": window.handed_over,
        "deleted": None if stated is None else {"time": stated.time, "done": stated.done},
        "instants": list(policy.activation_instants),
        "last_error": service.driver.failures.get(window.name),
        "cosigners": service.cosigning.status(window.name),
        "time_stamps": service.cosigning.time_stamps(window.name),
        "beacon": service.rounds.status(policy, _next_release(service, window), service.clock()),
        # Of the process that answers; what follows only the leader knows.
        "leads": service.leadership.leads,
        "leader": service.leadership.leader(),
        "busy": None if busy is None else {"with": busy[0], "percent": int(100 * busy[1])},
    }


owners = APIRouter(
    prefix="/v1/owner/windows/{window}",
    route_class=StrictRoute,
    tags=["owner"],
    responses=documented("4XX", "5XX"),
)
DocumentId = Annotated[str, Query(alias="id", min_length=1, max_length=512)]


@owners.post("/rows", operation_id="proveRows")
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


@owners.get("/documents", operation_id="proveDocument")
def prove_document(
    service: ServiceDependency, tenant: OwnerDependency, window: WindowName, name: DocumentId
) -> Response:
    """Prove what the closed log says of one document: never there, there, or gone since when."""
    note(look=Look.of(window, [name]))
    return signed_json(service.owning.document(tenant, window, name).encode())


@owners.get("/counts", operation_id="countRows")
def count_rows(
    service: ServiceDependency, tenant: OwnerDependency, window: WindowName
) -> dict[str, Any]:
    """Show how many rows each version of the tenant's index has, and how many are null rows."""
    note(look=Look.of(window))
    return service.owning.counts(tenant, window)
