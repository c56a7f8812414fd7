"""`ragaudit prover window publish`: files are what the service answers, with its headers."""

import json
from pathlib import Path
from typing import Any

import pytest
from ragaudit.prover.command.cli import app
from typer.testing import CliRunner


def test_a_window_is_published_as_the_service_shows_it(
    scenario: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario.open()
    scenario.ask()
    scenario.service.driver.checkpoint("w1")
    monkeypatch.setenv("RAGAUDIT_PROVER__STORE__URL", scenario.settings.store.url)
    settings, folder = scenario.folder / "prover/prover.yaml", tmp_path / "published"
    command = ["window", "publish", "w1", str(folder), "--settings", str(settings), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.relative_to(folder).parts[0] for path in files} == {"checkpoint", "tile"}
    for path in files:
        name = path.relative_to(folder).as_posix()
        answer = scenario.api.get(f"/v1/windows/w1/log/{name}")
        assert answer.status_code == 200 and answer.content == path.read_bytes()
        immutable = "immutable" in answer.headers["Cache-Control"]
        assert immutable == (name != "checkpoint")
    size = json.loads(result.stdout)["size"]
    assert (folder / "checkpoint").read_text().split("\n")[1] == str(size)
    assert (folder / f"tile/0/000.p/{size}").is_file()
