"""The example of docs/tenant-developer.md runs as it stands."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client import transport

CHAPTER = Path(__file__).parents[3] / "docs" / "tenant-developer.md"


def test_the_example_runs(
    provider: Any,
    verifier: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        service = verifier if request.url.host == "regulator.example" else provider
        response: httpx.Response = service.handle(request)
        return response

    real = httpx.AsyncClient

    def mocked(**arguments: Any) -> httpx.AsyncClient:
        return real(**{**arguments, "transport": httpx.MockTransport(handle)})

    monkeypatch.setattr(transport.httpx, "AsyncClient", mocked)  # type: ignore[attr-defined]
    (example,) = re.findall(r"```python\n(.*?)```", CHAPTER.read_text(encoding="utf-8"), re.DOTALL)
    names = {
        "api_key": "secret-api-key",
        "verifier_key": provider.policy.keys.verifier.raw.hex(),
        "state_dir": tmp_path,
    }
    exec(compile(example, str(CHAPTER), "exec"), names)
    output = capsys.readouterr().out
    assert "slot 0 of tenant acme" in output
    assert "1 accepted, 5 queries left" in output
    assert verifier.received[0][0] == "receipts"
