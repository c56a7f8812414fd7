"""Requests, answers, and who carries them."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import quote

import httpx
from ragaudit.encoding.errors import UnavailableError

__all__ = ["Answer", "Client", "HttpClient", "Request", "Secrets", "json_request"]

MAX_ANSWER: Final = 4 * 1024 * 1024
"""Bytes of an answer that are looked at."""
_LOST = "no answer: the connection ended"
REFUSED: Final = ("401", "429")
"""Of requests that nobody judged: the key is none, or came too often."""


@dataclass(frozen=True)
class Request:
    """One request, as it is sent but for the key.

    Attributes:
        by: the tenant whose key goes with it.
        method: of HTTP, or SQL.
        path: as it stands on the request line, escaped; or SQL statements.
        body: as sent; "" for none.
        headers: beside the key's. A value ``{etag}`` is the entity tag of the answer before.
    """

    by: str
    method: str
    path: str
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def holds(self, marker: str) -> bool:
        """Return whether the request itself has a text, so that an answer may repeat it."""
        return marker in self.path or marker in self.body or marker in str(dict(self.headers))


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        status: of HTTP; OK or a SQLSTATE of SQL; "" if nothing came.
        text: the body; rows as JSON; what went wrong if nothing came.
        etag: the entity tag, "" without.
        seconds: from the first byte sent to the last one read.
        wait: seconds that the store asks to wait before the request is sent again.
    """

    status: str
    text: str
    etag: str = ""
    seconds: float = 0.0
    wait: float = 1.0

    @property
    def judged(self) -> bool:
        """Whether the store decided about the request at all."""
        return self.status not in ("", *REFUSED)

    @property
    def succeeded(self) -> bool:
        """Whether the store did what it was asked for."""
        return self.status == "OK" or self.status.startswith("2")


class Client(Protocol):
    """Carries requests."""

    def send(self, request: Request) -> Answer:
        """Return the answer to a request; a failure is an answer without a status."""

    def close(self) -> None:
        """Release connections."""


class Secrets:
    """The keys, and texts without them."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        """Keep keys.

        Args:
            keys: by tenant.
        """
        self._keys = dict(keys)

    def of(self, tenant: str) -> str | None:
        """Return the key of a tenant, None without one."""
        return self._keys.get(tenant)

    def redacted(self, text: str) -> str:
        """Return a text with every key replaced by whose it is."""
        for tenant, key in self._keys.items():
            for form in {key, json.dumps(key)[1:-1], quote(key, safe="")}:
                text = text.replace(form, f"<key of {tenant}>")
        return text


class HttpClient:
    """Sends requests over HTTP, their paths exactly as they are written."""

    def __init__(
        self, url: str, header: str, prefix: str, secrets: Secrets, timeout: float
    ) -> None:
        """Connect lazily.

        Args:
            url: of the service; a path of its is put before every request's.
            header: that carries the key.
            prefix: of the key there, such as ``Bearer ``.
            timeout: in seconds, of each step of a request.
        """
        self._url = httpx.URL(url)
        self._header = header
        self._prefix = prefix
        self._secrets = secrets
        # No environment: a proxy in between would be tested instead.
        self._http = httpx.Client(trust_env=False, timeout=timeout)

    def close(self) -> None:
        """Release connections."""
        self._http.close()

    def send(self, request: Request) -> Answer:
        """Return the answer to a request; a failure is an answer without a status."""
        headers = {"accept": "application/json, text/event-stream", **request.headers}
        key = self._secrets.of(request.by)
        if key:
            headers[self._header] = f"{self._prefix}{key}"
        if request.body:
            headers.setdefault("content-type", "application/json")
        target = self._url.raw_path.rstrip(b"/") + request.path.encode("ascii")
        answer = self._sent(request, target, headers)
        # A kept connection may have ended just now: whether this request ends one, a new one tells.
        return self._sent(request, target, headers) if answer.text == _LOST else answer

    def _sent(self, request: Request, target: bytes, headers: Mapping[str, str]) -> Answer:
        built = self._http.build_request(
            request.method,
            self._url,
            content=request.body.encode(),
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            # Not as part of the URL, whose dot segments the client would resolve.
            extensions={"target": target, "timeout": self._http.timeout.as_dict()},
        )
        started = time.perf_counter()
        try:
            answer = self._http.send(built, stream=True)
            try:
                body = b""
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > MAX_ANSWER:
                        break
            finally:
                answer.close()
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            return Answer("", _LOST)
        except httpx.HTTPError as error:
            return Answer("", f"no answer: {type(error).__name__}")
        seconds = time.perf_counter() - started
        text = body[:MAX_ANSWER].decode("utf-8", "replace")
        wait = answer.headers.get("retry-after", "1")
        return Answer(
            str(answer.status_code),
            text,
            answer.headers.get("etag", ""),
            seconds,
            float(wait) if wait.isdecimal() else 1.0,
        )


def json_request(
    by: str, path: str, body: Any, headers: Mapping[str, str] | None = None, method: str = "POST"
) -> Request:
    """Return a request with a JSON body.

    Args:
        by: the tenant whose key goes with it.
        path: as it stands on the request line.
        body: any JSON value.
    """
    return Request(by, method, path, json.dumps(body), headers or {})


def succeeded(client: Client, request: Request, where: str) -> Answer:
    """Return the answer to a request that must succeed before the test makes sense.

    Args:
        where: the field that names what is asked for, if it does not.

    Raises:
        UnavailableError: nothing answers, or with an error.
    """
    answer = client.send(request)
    if answer.succeeded:
        return answer
    said = f"{answer.status} to {request.method}" if answer.status else answer.text
    raise UnavailableError(said, where=where, expected="a store that answers this tenant")


def members(text: str) -> Any:
    """Return the JSON value of an answer, also of one server-sent event; None if it has none."""
    lines = [line[5:] for line in text.splitlines() if line.startswith("data:")]
    for candidate in (text, "".join(lines)):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    return None


def numbers(value: Any) -> Sequence[list[float]]:
    """Return the lists of numbers in a JSON value, also those written as texts."""
    found: list[list[float]] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            if item and all(type(one) in (int, float) for one in item):
                found.append(item)
            else:
                waiting.extend(item)
        elif isinstance(item, str) and item.startswith("[") and item.endswith("]"):
            inner = members(item)
            if isinstance(inner, list):
                waiting.append(inner)
    return found


def texts(value: Any) -> Sequence[str]:
    """Return the texts in a JSON value, names of members not among them."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str):
            found.append(item)
    return found
