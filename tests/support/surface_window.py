"""A real window with the surfaces in front of it."""

from typing import Any

from ragaudit.prover.backends.interface import Document, attributes_text
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.settings import SurfaceSettings
from ragaudit.prover.store import tables
from scenario import ProverScenario
from sqlalchemy import func, select

WINDOW = {
    "privacy": "none",
    "opens_after_seconds": 60,
    "length_seconds": 600,
    "activation_every_seconds": 100,
    "sampling_after_seconds": 60,
    "merge_delay_seconds": 55,
    "top_k_max": 4,
    "queries_per_account": 30,
    "slots": 4,
    "release_seconds": 60,
    "public_columns": {"lang": "string", "year": "integer"},
    "filters": True,
    "query_kinds": ["text", "vector"],
    "audit": {"mode": "A", "deadline_seconds": 600},
}
NOISED = {"privacy": "gaussian", "sigma": "40", "epsilon_acc": None, "coalition_max": 2}
SURFACES = {
    "enabled": ["openai", "chroma", "qdrant", "dify"],
    "collections": {"handbook": "one", "manual": "two"},
}
CHROMA = "/api/v2/tenants/default_tenant/databases/default_database/collections"
VECTOR = [1.0, -0.5] + [0.25] * 14


def texts(tenant: str) -> list[Document]:
    return [
        Document(
            f"{tenant}-{n}",
            f"document {n} of {tenant}",
            attributes_text({"lang": "en" if n % 2 else "de", "year": 2020 + n % 3, "n": n}, "d"),
        )
        for n in range(12)
    ]


def start(scenario: ProverScenario, window: dict[str, Any], **surfaces: Any) -> None:
    """Open a window with the surfaces in front of it."""
    given = SurfaceSettings.model_validate({**SURFACES, **surfaces})
    scenario.settings = scenario.settings.model_copy(update={"surfaces": given})
    scenario.restart()
    store = StoredDocuments(scenario.service.store)
    for tenant in ("one", "two"):
        store.add(tenant, texts(tenant), replace=True)
    scenario.open(window=window, registered=("ada", "cyd"))


def logged(scenario: ProverScenario) -> int:
    """Entries of the window's log."""
    with scenario.service.store.read() as connection:
        return int(connection.scalar(select(func.count()).select_from(tables.entry)) or 0)
