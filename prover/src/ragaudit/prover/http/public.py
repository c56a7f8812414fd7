"""What everybody may ask: health, windows, the log and its proofs."""

from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import PlainTextResponse
from ragaudit.encoding.errors import NotFound, TooEarly
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.challenge import Activation, Countersignature
from ragaudit.ledger.messages.manifests import EmbedderManifest
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown import (
    EpochEntry,
    ShownOpening,
    ShownWindow,
    VersionEntry,
    WindowList,
)
from ragaudit.ledger.messages.window_chain import ChainedWindow, WindowChain
from ragaudit.prover.errors import UnknownRecord
from ragaudit.prover.http.requests import ServiceDependency
from ragaudit.prover.lifecycle.committing import WindowReader
from ragaudit.prover.lifecycle.retention import deletion_of
from ragaudit.prover.service import Service
from ragaudit.prover.store.states import REGISTERS
from ragaudit.prover.window.records import entries_of
from ragaudit.prover.window.windows import Window
from ragaudit.serving.bodies import signed_json
from ragaudit.serving.problems import documented
from ragaudit.serving.settings import NAME_PATTERN

_Shown = TypeVar("_Shown", VersionEntry, EpochEntry)

WindowName = Annotated[str, Path(pattern=NAME_PATTERN)]

router = APIRouter(tags=["public"], responses=documented("4XX", "5XX"))


@router.get("/healthz", operation_id="healthz")
def healthz() -> dict[str, str]:
    """Say that the process is alive."""
    return {"status": "alive"}


@router.get("/readyz", operation_id="readyz")
def readyz(service: ServiceDependency) -> dict[str, str]:
    """Say that store and fences are writable, the fences agree and the backend answers."""
    service.check_ready()
    return {"status": "ready"}


@router.get("/v1/windows", operation_id="listWindows")
def list_windows(
    service: ServiceDependency,
    served: Annotated[bool, Query(description="Only those that are, or will be, open.")] = False,
) -> list[dict[str, Any]]:
    """List all windows in order of creation, or those in which an account can have a place."""
    shown = [one for one in service.windows.all() if one.state in REGISTERS or not served]
    return WindowList([view(service, window) for window in shown]).to_json()


@router.get("/v1/window-chain", operation_id="getWindowChain")
def get_window_chain(service: ServiceDependency) -> dict[str, Any]:
    """Show every countersigned window with its keys, its end, and which window it continues."""
    signed = [window for window in service.windows.all() if window.countersignature is not None]
    chained = tuple(_chained(service, window) for window in signed)
    return WindowChain(service.settings.provider, chained).to_json()


@router.get("/v1/windows/{window}", operation_id="getWindow")
def get_window(service: ServiceDependency, window: WindowName) -> dict[str, Any]:
    """Show a window: state, policy, countersigned opening, embedder, released activations."""
    return view(service, service.windows.get(window)).to_json()


@router.get(
    "/v1/windows/{window}/receipts/{index}/proof",
    operation_id="getProof",
    response_class=PlainTextResponse,
)
def get_proof(
    service: ServiceDependency,
    window: WindowName,
    index: Annotated[int, Path(ge=0, le=2**53 - 1)],
) -> PlainTextResponse:
    """Return the .tlog-proof of a log entry under a cosigned checkpoint."""
    log = service.open_windows.signed_log(window)
    # Unknown, not too early: waiting helps only for an entry that is there.
    if index >= log.entries.head().size:
        raise UnknownRecord("no such entry", where=f"index {index}")
    proof = log.checkpoints.tlog_proof(index, settled=_settled(service, window, log))
    if proof is None:
        raise TooEarly("no cosigned checkpoint covers the entry yet", where=f"index {index}")
    return PlainTextResponse(proof.encode())


@router.get("/v1/windows/{window}/deletion", operation_id="getDeletion")
def get_deletion(service: ServiceDependency, window: WindowName) -> Response:
    """Show the statement that everything but the window's public part was deleted."""
    service.windows.get(window)
    with service.store.read() as connection:
        stated = deletion_of(connection, window)
    # It says that nothing is there any more: before that it would be false.
    if stated is None or not stated.done:
        raise NotFound("nothing was deleted", where=window)
    return signed_json(stated.statement)


@router.get("/v1/windows/{window}/log/{path:path}", operation_id="getLog", response_class=Response)
def get_log(service: ServiceDependency, window: WindowName, path: str) -> Response:
    """Return the log's checkpoint, a tile or an entry bundle (C2SP tlog-tiles)."""
    log = service.open_windows.signed_log(window)
    content = log.checkpoints.resource(path)
    if path == "checkpoint":
        return Response(content, media_type="text/plain; charset=utf-8")
    return Response(
        content,
        media_type="application/octet-stream",
        headers={"Cache-Control": "max-age=31536000, immutable"},
    )


def _settled(service: Service, window: str, log: WindowReader) -> int | None:
    """Return until when a checkpoint was cosigned that is given without the quorum asked."""
    if log.checkpoints.asked is None:
        return None
    policy = Policy.parse(service.windows.get(window).policy)
    # Within the merge delay a receipt becomes complete, with that quorum or without.
    wait = min(service.settings.cosigners.wait_seconds, policy.merge_delay_seconds)
    return service.clock() // 1000 - wait


def view(service: Service, window: Window) -> ShownWindow:
    """Return a window as everybody may see it (docs/spec/08-services.md §8.6)."""
    policy = Policy.parse(window.policy)
    activations = service.windows.activations(window.name)
    signed, salt, body = window.countersignature, window.opening_salt, window.opening_body

    def later(kind: type[_Shown], *, shown: bool) -> tuple[_Shown, ...]:
        return _shown(service, policy, kind) if shown and signed is not None else ()

    return ShownWindow(
        window=window.name,
        state=window.state,
        policy=policy,
        policy_digest=policy.digest,
        countersignature=None if signed is None else Countersignature.parse(signed),
        opening=None if salt is None or body is None else ShownOpening(salt, body),
        embedder=EmbedderManifest.parse(window.embedder),
        versions=later(VersionEntry, shown=policy.retrieval.versions),
        epochs=later(EpochEntry, shown=True) if policy.epochs else None,
        activations=tuple(Activation.parse(activations[number]) for number in sorted(activations)),
    )


def _chained(service: Service, window: Window) -> ChainedWindow:
    salt, body, signed = window.opening_salt, window.opening_body, window.countersignature
    assert salt is not None and body is not None and signed is not None
    proof = None
    final = window.final_checkpoint if window.handed_over else None
    if final is not None:
        # Under the final checkpoint, not the first that covers the opening: it shows the end.
        size = parse_checkpoint(final).head.size
        path = service.open_windows.signed_log(window.name).entries.inclusion_proof(0, size)
        proof = TlogProof(0, path, final).encode().decode("utf-8")
    policy, opening = Policy.parse(window.policy), ShownOpening(salt, body)
    return ChainedWindow(policy, Countersignature.parse(signed), opening, proof)


def _shown(service: Service, policy: Policy, kind: type[_Shown]) -> tuple[_Shown, ...]:
    """Return the entries of later index versions, or of later seed epochs."""
    log = service.open_windows.signed_log(policy.window)
    with service.store.read() as connection:
        logged = entries_of(connection, policy.window, kind.ENTRY)
    found = []
    for entry in logged:
        proof = log.checkpoints.tlog_proof(entry.index)
        text = None if proof is None else proof.encode().decode("utf-8")
        found.append(kind(entry.index, entry.salt, entry.body, text))
    return tuple(found)
