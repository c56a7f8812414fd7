"""What the commands send to services: one connection per call, for callers that block."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ragaudit.client import disputing
from ragaudit.client.background import run
from ragaudit.client.transport import Service
from ragaudit.client.verifier import SignsFor, Submission, VerifierService
from ragaudit.client.window import Window

__all__ = ["proof", "settle", "submit", "tell", "window"]

T = TypeVar("T")


def window(prover_url: str, name: str) -> Any:
    """Return a window as the provider shows it, JSON.

    Raises:
        ProviderRefusal, ServiceUnreachable, InvalidReply: as `Service.request`.
    """
    return _call(prover_url, lambda service: service.get(f"/v1/windows/{name}"))


def proof(prover_url: str, window_name: str, index: int) -> str:
    """Return the .tlog-proof of the record at log position ``index``.

    Raises:
        ProviderRefusal: there is none yet (status 425), or another refusal.
        ServiceUnreachable, InvalidReply: as `Service.request`.
    """
    path = f"/v1/windows/{window_name}/receipts/{index}/proof"
    return _call(prover_url, lambda service: service.get_text(path))


def submit(
    verifier_url: str,
    origin: str,
    public_halves: Sequence[Mapping[str, Any]],
    signs: SignsFor | None = None,
) -> Submission:
    """Give the verifier public halves of receipts; return as `VerifierService.submit`."""
    return _call(
        verifier_url, lambda service: VerifierService(service).submit(origin, public_halves, signs)
    )


def tell(verifier_url: str, origin: str, what: str, body: Mapping[str, Any]) -> None:
    """Give the verifier a signed document; as `VerifierService.tell`."""
    _call(verifier_url, lambda service: VerifierService(service).tell(origin, what, body))


def settle(
    verifier_url: str,
    origin: str,
    receipt_file: Mapping[str, Any],
    arbiter: tuple[str, Window] | None = None,
) -> Any:
    """Show the verifier a disputed file, or the arbiter a file whose record was sampled.

    Args:
        verifier_url: of the verifier.
        origin: of the window's log.
        receipt_file: both halves, JSON.
        arbiter: its URL and the window that it judges by; None if there is none to ask.

    Returns:
        ``sampled`` and ``step``, as `disputing.settle`.
    """

    async def work(service: Service) -> Any:
        verifier = VerifierService(service)
        if arbiter is None:
            return await disputing.settle(origin, verifier, receipt_file)
        url, window = arbiter
        async with _opened(url) as judge:
            return await disputing.settle(
                origin, verifier, receipt_file, disputing.Arbiter(judge, window)
            )

    return _call(verifier_url, work)


def _call(url: str, work: Callable[[Service], Awaitable[T]]) -> T:
    """Call a service and close the connection; errors as `Service.request`."""

    async def called() -> T:
        async with _opened(url) as service:
            return await work(service)

    return run(called())


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Service]:
    service = Service(url)
    try:
        yield service
    finally:
        await service.aclose()
