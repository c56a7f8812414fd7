"""What the operator may ask: windows and accounts."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, status
from ragaudit.prover.http.dependencies import ServiceDependency, operator
from ragaudit.prover.http.models import NewAccountBody, NewWindowBody
from ragaudit.prover.http.operations import window_status
from ragaudit.prover.http.public import WindowName
from ragaudit.prover.http.strict_json import StrictRoute

router = APIRouter(
    prefix="/v1/operator",
    tags=["operator"],
    dependencies=[Depends(operator)],
    route_class=StrictRoute,
)

AccountName = Annotated[str, Path(min_length=1, max_length=127)]


@router.post("/windows", operation_id="createWindow", status_code=status.HTTP_201_CREATED)
def create_window(service: ServiceDependency, body: NewWindowBody) -> dict[str, Any]:
    """Create a window from the settings and overrides; it then opens by itself."""
    window = service.create_window(body.window, body.overrides)
    return window_status(service, window)


@router.get("/windows", operation_id="listWindowStatus")
def list_window_status(service: ServiceDependency) -> list[dict[str, Any]]:
    """Show where every window stands, in order of creation."""
    return [window_status(service, each) for each in service.windows.all()]


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


@router.get("/accounts", operation_id="listAccounts")
def list_accounts(service: ServiceDependency) -> list[dict[str, str]]:
    """List tenants and names of all accounts."""
    return [{"tenant": each.tenant, "name": each.name} for each in service.accounts.all()]


@router.post("/accounts", operation_id="createAccount", status_code=status.HTTP_201_CREATED)
def create_account(service: ServiceDependency, body: NewAccountBody) -> dict[str, str]:
    """Create an account; its API key is shown this one time."""
    key = service.accounts.add(body.tenant, body.name)
    return {"tenant": body.tenant, "name": body.name, "key": key}


@router.post("/accounts/{name}/key", operation_id="rotateKey")
def rotate_key(service: ServiceDependency, name: AccountName) -> dict[str, str]:
    """Replace an account's API key; the old one is dead at once."""
    return {"name": name, "key": service.accounts.rotate_key(name)}
