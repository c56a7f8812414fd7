"""What the scenario's provider has: documents, settings of a window, a folder with its keys."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragaudit.encoding.relations import NeighboringRelation
from ragaudit.lab.scenario.policy import COLUMNS
from ragaudit.ledger.messages.columns import canonical_text
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.command.set_up import SetUp, set_up
from ragaudit.prover.keys import load_key
from ragaudit.prover.settings import (
    AuditSettings,
    EstimatorSettings,
    WindowSettings,
    load_settings,
)
from ragaudit.prover.store.database import Store

PROVIDER: Final = "provider.example"
WINDOW: Final = "w1"
TENANTS: Final = ("acme", "beta")
ROWS: Final = 20

SETTINGS: Final = WindowSettings(
    opens_after_seconds=20,
    length_seconds=60,
    activation_every_seconds=30,
    sampling_after_seconds=20,
    epsilon_acc="20",
    delta_acc="0.00001",
    delta_policy="0.00001",
    sigma="4",
    relation=NeighboringRelation.REPLACE,
    top_k_max=3,
    queries_per_account=4,
    slots=6,
    coalition_max=2,
    embedder_tolerance=4,
    estimator=EstimatorSettings(theta="0.9", tau_seconds=10, sketch_bits=64),
    audit=AuditSettings(mode="A", deadline_seconds=100),
    merge_delay_seconds=15,
    clock_skew_seconds=2,
    promise_life_seconds=30,
    claim_margin_seconds=5,
    release_seconds=20,
    retry_seconds=0,
    account_index=False,
    epochs=False,
)
"""A small window: every record is checked, and noise outweighs the scores."""

EXACT_SETTINGS: Final = WindowSettings(
    privacy="none",
    public_columns={each.name: each.type for each in COLUMNS},
    filters=True,
    query_kinds=("text", "vector"),
    versions=True,
    **SETTINGS.model_dump(
        exclude_unset=True,
        exclude={
            "epsilon_acc", "delta_acc", "delta_policy", "sigma", "relation", "coalition_max",
            "retry_seconds", "account_index", "epochs",
        },
    ),
)  # fmt: skip
"""The same window without noise, with all that a policy may allow."""


def documents(tenant: str, count: int = ROWS) -> list[Document]:
    """Return a tenant's documents, texts that differ in number and tenant only.

    Args:
        tenant: its name.
        count: how many.
    """
    return [Document(f"{tenant}-{i}", f"document {i} of {tenant}") for i in range(count)]


def shelved_documents(tenant: str, count: int = ROWS) -> list[Document]:
    """Return the same documents with a shelf and a year each, and two copies of one of them.

    Args:
        tenant: its name.
        count: how many, the copies not counted.
    """
    columns = [{"shelf": "left" if i % 2 else "right", "year": 2000 + i} for i in range(count)]
    made = [
        Document(each.id, each.content, canonical_text(values))
        for each, values in zip(documents(tenant, count), columns, strict=True)
    ]
    copies = [Document(f"{tenant}-copy-{n}", made[3].content, made[3].attributes) for n in (1, 2)]
    return [*made, *copies]


@dataclass(frozen=True)
class Offer:
    """What a provider offers in a window.

    Attributes:
        settings: of the window.
        documents: of each tenant, by its name.
    """

    settings: WindowSettings
    documents: Callable[[str], list[Document]]


PRIVATE: Final = Offer(SETTINGS, documents)
EXACT: Final = Offer(EXACT_SETTINGS, shelved_documents)


def ingest(made: SetUp, offer: "Offer | None" = None) -> None:
    """Store the documents of every tenant in the provider's database, which is closed again.

    Args:
        made: the provider's folder.
        offer: whose documents; those of `PRIVATE` if it is not given.
    """
    of = (offer or PRIVATE).documents
    store = Store.open(load_settings(made.settings).store.url)
    for tenant in TENANTS:
        StoredDocuments(store).add(tenant, of(tenant))
    store.close()


def prover_folder(folder: Path) -> SetUp:
    """Return what `new_prover_folder` made in a folder, or in a copy of it."""
    keys = folder / "keys"
    provider = load_key(keys / "provider.key").public
    return SetUp(folder / "prover.yaml", keys / "operator.token", provider)


def new_prover_folder(folder: Path, offer: Offer = PRIVATE) -> SetUp:
    """Make settings, keys and documents of the scenario's provider.

    Args:
        folder: an empty one, or none yet.
        offer: whose documents.
    """
    made = set_up(folder, provider=PROVIDER, verifier="http://verifier.test")
    ingest(made, offer)
    return made
