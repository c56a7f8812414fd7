"""Bounded JSON over HTTP with a store that is not ours: it may be slow, broken or another one."""

import json
import logging
from pathlib import Path
from typing import Any, NoReturn

import httpx
from pydantic_core import from_json
from ragaudit.http import HttpClient, LongAnswer, PackedAnswer, trusted_authorities
from ragaudit.prover.errors import BackendUnavailable

MAX_ANSWER_BYTES = 2**28  # a page of 10,000 vectors of 3,072 entries does not fit; one of 500 does

_log = logging.getLogger(__name__)


class StoreHttp:
    """Calls to one store. Safe to use from several threads.

    Its errors go to applications: they name no address, which the log has for the operator.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        headers: dict[str, str] | None = None,
        authorities: Path | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Prepare the calls; nothing is sent yet.

        Args:
            url: of the store, with a path if it has one.
            timeout: seconds for each phase of a call.
            headers: sent with every call; may hold a secret.
            authorities: PEM file of the certificate authorities to trust instead of the usual.
            transport: instead of the network, for tests.

        Raises:
            MalformedSettings: the file holds no certificates.
        """
        self._url = url
        self._http = HttpClient(
            url,
            timeout=timeout,
            most=MAX_ANSWER_BYTES,
            verify=trusted_authorities(authorities, "backend ca_file"),
            headers=headers,
            transport=transport,
            connects=2,
        )

    def close(self) -> None:
        """Release the connections."""
        self._http.close()

    def send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body of an answer that is 2xx or 4xx.

        Args:
            path: below the store's URL, its parts quoted.
            body: JSON; None for no body.

        Raises:
            BackendUnavailable: no answer, one of 5xx or 429, a redirection, a packed or too long
                answer.
        """
        kind = {} if body is None else {"Content-Type": "application/json"}
        try:
            answer = self._http.request(method, path, content=body, headers=kind)
        except PackedAnswer:
            self._refuse("packed answer", "sent a packed answer")
        except LongAnswer:
            self._refuse(
                f"more than {MAX_ANSWER_BYTES} bytes",
                "sent too long an answer: a smaller backend.page_rows may help",
            )
        except httpx.HTTPError as error:
            self._refuse(f"{type(error).__name__}: {error}", "cannot be reached")
        status = answer.status_code
        if status >= 500 or status == 429 or 300 <= status < 400:
            self._refuse(f"status {status} to {method} {path}", f"answered {status}")
        return status, answer.content

    def json(self, method: str, path: str, value: object | None = None) -> tuple[int, Any]:
        """Return status and JSON value of an answer that is 2xx or 4xx.

        Args:
            path: below the store's URL, its parts quoted.
            value: the body; None for no body.

        Raises:
            BackendUnavailable: as `send`, or an answer of success that is not JSON.
        """
        body = None if value is None else json.dumps(value, allow_nan=False).encode()
        status, data = self.send(method, path, body)
        try:
            # Vectors are long texts, for which the standard library takes nine times as long.
            return status, from_json(data, allow_inf_nan=False, cache_strings="keys")
        except ValueError:
            if status >= 400:
                return status, None
            self._refuse(f"no JSON to {method} {path}", "answered something else than JSON")

    def _refuse(self, detail: str, what: str) -> NoReturn:
        _log.warning("the vector store at %s: %s", self._url, detail[:300])
        raise BackendUnavailable(f"the vector store {what}") from None
