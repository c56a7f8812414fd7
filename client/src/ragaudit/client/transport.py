"""JSON over HTTP with problem documents, retries where a repetition is harmless, size caps."""

import json
import time
from collections.abc import Mapping
from typing import Any

import httpx
from ragaudit.client.errors import (
    BudgetExhausted,
    InvalidReply,
    ProviderRefusal,
    ServiceUnreachable,
)

__all__ = ["Service"]

# Larger replies than any of this API are not read to their end.
MAX_REPLY_BYTES = 2**26
ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.25
_TRY_AGAIN = frozenset({502, 503, 504})


class Service:
    """One base URL. Not shared between threads."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.base_url,
            headers=dict(headers or {}),
            timeout=timeout_seconds,
            transport=transport,
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, path: str) -> Any:
        """Return the JSON value at ``path``; errors as :meth:`request`."""
        return self.json("GET", path)

    def get_text(self, path: str) -> str:
        """Return the text at ``path``; errors as :meth:`request`."""
        return self.request("GET", path).decode("utf-8", errors="strict")

    def post(self, path: str, body: object, *, repeatable: bool) -> Any:
        """Send JSON; ``repeatable`` says that a second arrival does no harm."""
        return self.json("POST", path, body, repeatable=repeatable)

    def json(self, method: str, path: str, body: object = None, *, repeatable: bool = True) -> Any:
        """Return the JSON value of the reply; InvalidReply if it is none."""
        data = self.request(method, path, body, repeatable=repeatable)
        try:
            return json.loads(data)
        except ValueError as error:
            raise InvalidReply("the reply is not JSON", where=self._place(path)) from error

    def request(
        self, method: str, path: str, body: object = None, *, repeatable: bool = True
    ) -> bytes:
        """Return the bytes of a reply with status 2xx.

        Raises:
            ProviderRefusal: a problem document; BudgetExhausted for status 429 with a refusal.
            ServiceUnreachable: no reply, after retries if ``repeatable``.
            InvalidReply: a redirection, an endless reply, or an error that is no document.
        """
        attempts = ATTEMPTS if repeatable else 1
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(1, attempts + 1):
            try:
                status, data = self._once(method, path, body)
            except httpx.TransportError as error:
                if attempt == attempts:
                    raise ServiceUnreachable(
                        f"no reply ({type(error).__name__})", where=self._place(path)
                    ) from error
            else:
                if status not in _TRY_AGAIN or attempt == attempts:
                    return self._checked(path, status, data)
            time.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _once(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = None if body is None else {"Content-Type": "application/json"}
        with self._http.stream(method, path, content=content, headers=headers) as response:
            data = bytearray()
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > MAX_REPLY_BYTES:
                    raise InvalidReply("the reply is too long", where=self._place(path))
            return response.status_code, bytes(data)

    def _checked(self, path: str, status: int, data: bytes) -> bytes:
        if 200 <= status < 300:
            return data
        try:
            problem = json.loads(data)
        except ValueError:
            problem = None
        if status < 400 or not isinstance(problem, dict):
            raise InvalidReply(
                f"HTTP status {status} without a problem document", where=self._place(path)
            )
        kind = BudgetExhausted if status == 429 and "refusal" in problem else ProviderRefusal
        raise kind(status, problem, where=self._place(path))

    def _place(self, path: str) -> str:
        return f"{self.base_url}{path}"
