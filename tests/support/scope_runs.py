"""`ragaudit attack scope`, run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml
from jsonschema import Draft202012Validator
from ragaudit.encoding.commands import ExitCode
from ragaudit.lab.attacks.cli import app
from ragaudit.lab.attacks.scope import probes
from ragaudit.lab.attacks.scope.exchange import Client, HttpClient, Secrets
from ragaudit.lab.attacks.scope.judging import SCHEMA
from ragaudit.lab.attacks.scope.probes import Canary
from ragaudit.lab.attacks.scope.running import Options, Plan
from ragaudit.lab.attacks.scope.stores.store import Scene, Store, StoreKind, load
from ragaudit.lab.attacks.scope.testing import STORES
from surface_app import NAMES
from typer.testing import CliRunner

DIMENSION = 16  # that of the embedder of tests
CODES = {"CLEAN": ExitCode.DONE, "LEAK": ExitCode.FALSE, "INCOMPLETE": ExitCode.INCOMPLETE}


C = TypeVar("C", bound=Client)


def secret(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.touch(mode=0o600)
    path.write_text(text)
    return name


def target(
    folder: Path, store: str, url: str, keys: dict[str, str], *,
    collections: dict[str, str] | None = None, dimension: int | None = DIMENSION, **more: Any,
) -> Path:  # fmt: skip
    """Write a target of the tenants acme and globex with new canaries; its path."""
    file = folder / "canaries.jsonl"
    if not file.exists():
        probes.write_canaries(file, probes.draw_canaries(["acme", "globex"], DIMENSION))
    tenants: dict[str, dict[str, Any]] = {
        name: {"collection": (collections or {}).get(name, "shared")} for name in ("acme", "globex")
    }
    for name, key in keys.items():
        tenants[name]["key_file"] = secret(folder, f"{name}.key", key)
    for name, members in more.pop("tenants", {}).items():
        tenants[name].update(members)
    document = {
        "store": store, "url": url, "tenants": tenants, "canaries": file.name,
        "dimension": dimension, **more,
    }  # fmt: skip
    path = folder / "scope.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def openai_plan(
    folder: Path, client_of: Callable[[dict[str, list[Canary]]], C], options: Options
) -> tuple[Plan, C]:
    """The plan of two tenants of an OpenAI-shaped store, and the client that answers for it.

    Args:
        client_of: makes it, of the canaries of each tenant.
    """
    keys = {"acme": "a", "globex": "b"}
    described = load(target(folder, "openai", "http://x", keys, collections=NAMES))
    found: dict[str, list[Canary]] = {tenant: [] for tenant in keys}
    for one in probes.read_canaries(described.canaries, "canaries"):
        found[one.tenant].append(one)
    client = client_of(found)
    scene = Scene(described, found, client, np.random.default_rng(0), frozenset(keys))
    return Plan(STORES["openai"](scene), options, plant=False), client


def adapter(folder: Path, store: StoreKind) -> Store:
    """What would be asked of a store of a kind by acme and globex, of which nobody is asked."""
    keys = {"acme": "a", "globex": "b"}
    url = "" if store == "pgvector" else "http://x"
    described = load(target(folder, store, url, keys, collections=NAMES))
    every = probes.read_canaries(described.canaries, "canaries")
    found = {tenant: [one for one in every if one.tenant == tenant] for tenant in keys}
    client = HttpClient("http://x", "authorization", "", Secrets({}), 1)
    scene = Scene(described, found, client, np.random.default_rng(0), frozenset(keys))
    return STORES[store](scene)


def scope(path: Path, *arguments: str) -> dict[str, Any]:
    """Run the test; its report, of which the schema holds, and its exit status."""
    result = CliRunner().invoke(app, ["scope", str(path), "--json", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    report: dict[str, Any] = json.loads(result.stdout)
    Draft202012Validator(SCHEMA).validate(report)
    assert result.exit_code == CODES[report["result"]], result.output
    return report


def found(report: dict[str, Any]) -> set[tuple[str, str]]:
    """Name and kind of every finding."""
    return {(one["probe"], one["kind"]) for one in report["findings"]}


def refused(path: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and message of a run that ends before its report."""
    result = CliRunner().invoke(app, ["scope", str(path), *arguments])
    assert result.exit_code and "error:" in result.stderr, (result.output, result.exception)
    return result.exit_code, result.stderr
