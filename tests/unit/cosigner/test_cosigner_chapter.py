"""The commands of docs/cosigner.md are ones that there are, with options that they have."""

import re
import shlex
from pathlib import Path

from cosigner_service import LOG
from ragaudit.verifier.command.cosigner import app
from ragaudit.verifier.cosigner.settings import Settings
from typer.testing import CliRunner

TEXT = (Path(__file__).parents[3] / "docs" / "cosigner.md").read_text("utf-8")


def test_the_set_up_runs_but_for_serving(tmp_path: Path) -> None:
    lines = re.findall(r"^    ragaudit cosigner (.+)$", TEXT, re.MULTILINE)
    assert lines[-1] == "serve" and len(lines) == 3
    for line in lines[:-1]:
        words = shlex.split(line.replace("/srv/cosigner", str(tmp_path)))
        words = [str(LOG.verifier_key) if "..." in word else word for word in words]
        if words[0] == "log":
            words += ["--settings", str(tmp_path / "cosigner.yaml")]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output


def test_the_table_has_every_setting() -> None:
    told = set(re.findall(r"^\| `([a-z_]+)", TEXT, re.MULTILINE))
    assert set(Settings.model_fields) <= told
