"""A served prover whose window has owners, honest or cheating, and the owner's own export."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from exact_windows import start, texts
from generation_channel import served
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.columns import NO_COLUMNS, NULL_ROW
from ragaudit.ledger.messages.documents import id_keys
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.index.builder import IndexBuilder, Source
from ragaudit.prover.index.committed import CommittedIndex, Rows
from scenario import ProverScenario

OWNER = PrivateKey.from_seed(b"o" * 32)
OWNED: dict[str, Any] = {"owners": {"keys": {"one": OWNER.public.raw.hex()}}, "versions": True}


class ShortRow(IndexBuilder):
    """Commits to the first row of every index at a tenth of its length."""

    def complete_rows(self, vectors: Rows) -> Rows:
        short = vectors.copy()
        short[0] = np.trunc(short[0] / 10)
        return super().complete_rows(short)


class MarkedRow(IndexBuilder):
    """Marks the first row of later versions as deleted, and leaves its document in it."""

    def commit(self, source: Source, **about: Any) -> CommittedIndex:
        if about["version"] > 1:
            columns = source.columns or (NO_COLUMNS,) * len(source.ids)
            source = replace(source, columns=(NULL_ROW, *columns[1:]))
        return super().commit(source, **about)


class HidingRow(IndexBuilder):
    """Lists the first document under the key of another id, so that nobody can ask for it."""

    def id_keys(self, window: str, tenant: str, secret: bytes, ids: Sequence[str]) -> bytes:
        return id_keys(window, tenant, secret, ["nobody's", *ids[1:]])


def export(documents: list[Document], file: Path, vectors: Any = None) -> Path:
    """Write documents as an owner exports them."""
    lines = []
    for number, each in enumerate(documents):
        line: dict[str, Any] = {"id": each.id, "text": each.content}
        if each.attributes:
            line["metadata"] = json.loads(each.attributes)
        if vectors is not None:
            line["vector"] = vectors[number].tolist()
        lines.append(json.dumps(line))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@dataclass
class OwnedProver:
    """A window of tenant one, and the options with which its owner's commands ask."""

    scenario: ProverScenario
    url: str
    folder: Path

    def __post_init__(self) -> None:
        self.api_key = self.scenario.service.owners.give_key("one")
        self.key = self.folder / "owner.key"
        self.key.write_text(OWNER.seed().hex() + "\n")

    @property
    def policy(self) -> Path:
        file = self.folder / "policy.json"
        file.write_bytes(self.scenario.service.windows.get("w1").policy)
        return file

    @property
    def options(self) -> list[str]:
        asked = ["--prover", self.url, "--window-name", "w1", "--api-key", self.api_key]
        return [*asked, "--policy", str(self.policy)]

    def change(self, documents: list[Document]) -> int:
        """Commit to other documents, in force at once."""
        StoredDocuments(self.scenario.service.store).add("one", documents, replace=True)
        version = self.scenario.service.refresher.refresh("w1", "one")
        service, clock = self.scenario.service, self.scenario.clock
        service.driver.checkpoint("w1")
        instants = self.scenario.policy().activation_instants
        clock.at(next(i for i in instants if 1000 * i > clock()))
        service.driver.step("w1")
        return version

    def close(self) -> None:
        scenario = self.scenario
        scenario.hand_over()
        scenario.service.driver.checkpoint("w1")


@contextmanager
def owned_prover(
    scenario: ProverScenario, folder: Path, documents: list[Document] | None = None
) -> Iterator[OwnedProver]:
    """Serve an open window whose owner has a key in the policy."""
    start(scenario, documents or texts(), **OWNED)
    scenario.service.driver.step("w1")
    scenario.service.driver.checkpoint("w1")
    with served(scenario.api.app) as url:  # type: ignore[arg-type]
        yield OwnedProver(scenario, url.removesuffix("/v1"), folder)
