"""The examples of docs/tenant-developer.md run as they stand; its commands: tests/e2e."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit import client as exported
from ragaudit.client import errors

CHAPTER = Path(__file__).parents[3] / "docs" / "tenant-developer.md"
TEXT = CHAPTER.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
KEYS = ["secret-api-key", "another-key"]


@pytest.fixture
def second(provider: Any) -> Any:
    """Another account: alone with its provider, as far as it can see."""
    return type(provider)(now=provider.now, api_key=KEYS[1])


@pytest.fixture(autouse=True)
def network(provider: Any, second: Any, verifier: Any, intercept: Callable[..., None]) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.host == "regulator.example":
            service = verifier
        else:
            service = second if KEYS[1] in request.headers["authorization"] else provider
        response: httpx.Response = service.handle(request)
        return response

    intercept(handle)


def run(example: str, provider: Any, folder: Path) -> None:
    names = {
        "api_key": KEYS[0],
        "api_keys": KEYS,
        "verifier_key": provider.policy.keys.verifier.raw.hex(),
        "state_dir": folder,
    }
    exec(compile(example, str(CHAPTER), "exec"), names)


def test_the_example_of_one_account_runs(
    provider: Any, verifier: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(EXAMPLES[0], provider, tmp_path)
    output = capsys.readouterr().out
    assert "slot 0 of tenant acme" in output
    assert "1 accepted, 5 queries left" in output
    assert [call for call, _ in verifier.received] == ["statements", "receipts"]


def test_the_example_of_several_accounts_runs(
    provider: Any, verifier: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(EXAMPLES) == 2
    run(EXAMPLES[1], provider, tmp_path)
    assert "4 documents" in capsys.readouterr().out
    assert [call for call, _ in verifier.received] == ["statements", "receipts", "statements"]
    assert len(verifier.received[1][1]["receipts"]) == 2


def test_every_exception_is_exported_and_explained() -> None:
    for name in errors.__all__:
        assert name in exported.__all__
        assert f"| `{name}` |" in TEXT
