"""An arbiter that finds what a test wants."""

import json
from typing import Any

import httpx
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.disputes import Finding, file_digest


class Judge:
    """An arbiter that says what it is told to, signed."""

    def __init__(self) -> None:
        self.key = PrivateKey.from_seed(bytes([7]) * 32)  # that the policy names
        self.changes: dict[str, Any] = {}
        self.cases: list[Any] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == ("POST", "/v1/findings")
        assert "authorization" not in request.headers
        case = json.loads(request.content)
        self.cases.append(case)
        public = {**case["file"]["public"], "proof": None}
        digests = {
            "answer_digest": bytes.fromhex(public["answer_digest"]),
            "file_digest": file_digest(case["file"]),
        }
        fields = {"origin": public["origin"], "index": public["index"], "step": 8, "time": 1}
        finding = Finding(**{**fields, **digests, **self.changes}).signed(self.key)
        return httpx.Response(200, json={"finding": finding.to_json(), "public": public})
