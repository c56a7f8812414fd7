"""The arbiter over HTTP: an account brings a case, and takes the finding to the verifier itself.

Nothing but the two judges of a case is behind it, the provider's signature on the file and the
verifier's on the window: so it asks nobody who brings one, and calls out to nobody.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import hex_encode
from ragaudit.ledger.messages.bodies import CaseBody, FindingBody
from ragaudit.ledger.messages.receipt_check import GroupOperations
from ragaudit.serving.application import application
from ragaudit.serving.bodies import anonymous_room, receive_anonymous
from ragaudit.serving.problems import documented
from ragaudit.verifier.arbiter import Arbiter, read_window
from ragaudit.verifier.service.bodies import described, parse

__all__ = ["create_app"]

MAX_CASE_BYTES = 2**24
_AT_ONCE = 2  # parsed JSON takes up to eight times its bytes


def create_app(
    arbiter: Arbiter, verifier: PublicKey, operations: GroupOperations, clock: Callable[[], int]
) -> FastAPI:
    """Return the arbiter's HTTP application.

    Args:
        verifier: the statement key of the verifier whose windows are judged.
        clock: Unix milliseconds.
    """
    app = application("ragaudit arbiter")
    at_once, room = asyncio.Semaphore(_AT_ONCE), anonymous_room()

    async def received(request: Request) -> AsyncIterator[bytes]:
        async for place in receive_anonymous(request, MAX_CASE_BYTES, room):
            async with at_once:
                yield place.settle()

    @app.get("/healthz")
    def health() -> dict[str, str]:
        """Say that the service answers."""
        return {"status": "ok"}

    @app.get("/v1/keys")
    def keys() -> dict[str, str]:
        """Show the keys that a policy must name for this arbiter to judge its window."""
        return {"arbiter": hex_encode(arbiter.public.raw), "verifier": hex_encode(verifier.raw)}

    @app.post(
        "/v1/findings",
        openapi_extra=described(CaseBody),
        responses=documented(400, 413, 422, 503),
    )
    def find(body: Annotated[bytes, Depends(received)]) -> dict[str, Any]:
        """Judge a receipt file; the reply is what the verifier takes at `POST .../findings`."""
        case = parse(CaseBody, body)
        view = read_window(case.window, verifier)
        finding, public = arbiter.judge(case.file, view, operations, clock)
        return FindingBody(finding.to_json(), public.to_json()).to_json()

    return app
