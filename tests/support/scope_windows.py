"""A real window that holds canaries of two tenants, for `ragaudit attack scope`."""

from __future__ import annotations

from pathlib import Path

import scope_runs
from ragaudit.lab.attacks.scope import probes
from ragaudit.prover.backends.interface import Document, attributes_text
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.settings import SurfaceSettings
from ragaudit.prover.store.states import State
from scenario import ProverScenario

WINDOW = {
    "privacy": "none",
    "opens_after_seconds": 60,
    "length_seconds": 600,
    "activation_every_seconds": 100,
    "sampling_after_seconds": 60,
    "merge_delay_seconds": 55,
    "top_k_max": 8,
    "queries_per_account": 10_000,
    "slots": 4,
    "release_seconds": 60,
    "public_columns": {"tenant": "string", "ragaudit_tag": "string"},
    "filters": True,
    "audit": {"mode": "A", "deadline_seconds": 600},
}
ACCOUNTS = {"acme": "ada", "globex": "cyd"}
TENANTS = {"acme": "one", "globex": "two"}
NAMES = {"acme": "handbook", "globex": "manual"}
SURFACES = {"enabled": ["openai", "chroma", "qdrant", "mcp", "dify"],
            "collections": {"handbook": "one", "manual": "two"}}  # fmt: skip


def start(scenario: ProverScenario, kinds: list[str]) -> None:
    given = SurfaceSettings.model_validate(SURFACES)
    scenario.settings = scenario.settings.model_copy(update={"surfaces": given})
    scenario.restart()
    scenario.service.create_window("w1", {**WINDOW, "query_kinds": kinds})
    scenario.drive(State.COUNTERSIGNED)
    scenario.register("ada")
    scenario.register("cyd")
    scenario.service.driver.checkpoint("w1")
    scenario.clock.at(scenario.policy().start)
    scenario.drive(State.OPEN)


def planted(folder: Path) -> list[probes.Canary]:
    scope_runs.target(folder, "prover", "http://x", {})
    found = probes.read_canaries(folder / "canaries.jsonl", "canaries")
    return [canary for canary in found if canary.planted]


def fill_documents(scenario: ProverScenario, folder: Path) -> None:
    """Ingest the canaries of both tenants, whose file is made in the folder."""
    store = StoredDocuments(scenario.service.store)
    rows = planted(folder)
    for tenant, name in TENANTS.items():
        documents = [
            Document(
                canary.id, canary.text, attributes_text(canary.metadata("tenant", tenant), "canary")
            )
            for canary in rows if canary.tenant == tenant
        ]  # fmt: skip
        store.add(name, documents, replace=True)
