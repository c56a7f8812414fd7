"""Commands and services load what they use: each module below costs every start for nothing."""

import subprocess
import sys
from pathlib import Path

HELP = """
import sys
from ragaudit.cli import main

HEAVY = {
    *"rich numpy scipy sqlalchemy fastapi pydantic httpx yaml uvicorn".split(),
    "ragaudit.core", "ragaudit.http", "ragaudit.ledger.messages",
}

def walk(command, path):
    try:
        main.app([*path, "--help"], prog_name="ragaudit")
    except SystemExit as end:
        assert not end.code
    found = sorted(HEAVY & sys.modules.keys())
    assert not found, (path, found)
    for name, below in getattr(command, "commands", {}).items():
        walk(below, [*path, name])

for name, entry in main._commands().items():
    # Those two are of the laboratory; their options name what their tables hold.
    if name not in ("attack", "bench"):
        walk(main._load(entry), [name])
"""

SERVICE = """
import asyncio, sys
from pathlib import Path
from ragaudit.{party}.{app} import create_app
from ragaudit.{party}.settings import {load}

# Each of them is for a setting that is not set, or for what is done later, if ever.
UNUSED = {{
    *"jwt jinja2 mcp procrastinate psycopg rfc3161_client scipy alembic wordllama".split(),
    "cryptography.x509", "opentelemetry.sdk", "sqlalchemy.dialects.postgresql",
    "ragaudit.prover.surfaces.chroma", "ragaudit.prover.surfaces.dify",
    "ragaudit.prover.surfaces.mcp", "ragaudit.prover.surfaces.openai",
    "ragaudit.prover.surfaces.qdrant", "ragaudit.serving.spans", "ragaudit.verifier.report",
    "ragaudit.{other}", "ragaudit.client", "ragaudit.lab",
}}

async def started():
    app = create_app({load}(Path({settings!r})))
    async with app.router.lifespan_context(app):
        found = sorted(UNUSED & sys.modules.keys())
        assert not found, found

asyncio.run(started())
"""


def run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def ragaudit(*arguments: str | Path) -> None:
    words = [sys.executable, "-m", "ragaudit.cli", *map(str, arguments)]
    subprocess.run(words, check=True, capture_output=True)


def test_help_of_a_command_loads_nothing_that_its_work_needs() -> None:
    run(HELP)


def test_a_prover_loads_what_its_settings_ask_for(tmp_path: Path) -> None:
    folder = tmp_path / "prover"
    ragaudit("prover", "init", "--provider", "example.org", "--folder", folder)
    settings = folder / "prover.yaml"
    text = settings.read_text().replace("verifier:\n", "verifier:\n  allow_unpinned: true\n", 1)
    settings.write_text(text + "\nembedder: {name: none}\n")
    run(
        SERVICE.format(
            party="prover",
            app="http.app",
            load="load_settings",
            other="verifier",
            settings=str(settings),
        )
    )


def test_a_verifier_loads_what_its_settings_ask_for(tmp_path: Path) -> None:
    ragaudit("verifier", "init", "--name", "verifier.example/one", "--directory", tmp_path)
    run(
        SERVICE.format(
            party="verifier",
            app="service.app",
            load="load",
            other="prover",
            settings=str(tmp_path / "verifier.yaml"),
        )
    )
