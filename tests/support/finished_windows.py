"""A window that was asked, audited and archived, and what of it is stored, shown or deleted."""

import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from ragaudit.ledger.log.database import cut_journal
from ragaudit.prover.lifecycle.retention import Retention
from ragaudit.prover.store import tables
from ragaudit.prover.window.records import count_records
from scenario import ProverScenario
from sqlalchemy import func, select
from whole_windows import verdict

QUESTION: Final = "where is the sourdough kept over night"
V2: Final = {"privacy": "gaussian", "retry_seconds": 600, "account_index": True}
GONE: Final = (
    *(tables.idempotency, tables.promise, tables.response),
    *(tables.registration, tables.index_version),
)


class Finished:
    """A window of three accounts, which was asked, audited and archived."""

    def __init__(self, scenario: ProverScenario, **overrides: Any) -> None:
        self.scenario = scenario
        scenario.open(**{**V2, **overrides})
        first = self.ask("k1")
        assert first.status_code == 200, first.text
        self.receipt: str = f"w1.{first.json()['public']['index']}"
        assert scenario.promise(0).status_code == scenario.reveal(0).status_code == 200
        assert self.get(f"/v1/receipts/{self.receipt}", "ada").content == first.content
        self.end = scenario.policy().end
        self.copies: dict[str, Path] = {}

    def ask(self, key: str) -> Any:
        return self.scenario.api.post(
            "/v1/windows/w1/query",
            json={"query": QUESTION, "top_k": 2, "filter": "", "kind": "text"},
            headers={**self.scenario.headers("ada"), "Idempotency-Key": key},
        )

    def get(self, path: str, account: str | None = None) -> Any:
        headers = {} if account is None else self.scenario.headers(account)
        return self.scenario.api.get(path, headers=headers)

    def archive(self) -> "Finished":
        assert verdict(self.scenario)["result"] == "PASS"
        self.scenario.service.open_windows.forget("w1")
        return self

    @property
    def retention(self) -> Retention:
        return self.scenario.service.retention

    def delete(self) -> None:
        self.scenario.clock.at(self.end + 601)
        answer = self.scenario.api.post(
            "/v1/operator/windows/w1/delete", headers=self.scenario.operator
        )
        assert answer.status_code == 200 and answer.json()["deleted"] is not None, answer.text
        self.retention.step()

    def statement(self) -> bytes:
        answer = self.get("/v1/windows/w1/deletion")
        assert answer.status_code == 200, answer.text
        return bytes(answer.content)

    def rows(self) -> dict[str, int]:
        with self.scenario.service.store.read() as connection:
            found = {
                table.name: connection.scalar(select(func.count()).select_from(table)) or 0
                for table in GONE
            }
            return {**found, "records": count_records(connection, "w1")}

    def public(self) -> dict[str, Any]:
        """What everybody is shown of the window."""
        size = int(self.get("/v1/windows/w1/log/checkpoint").text.split("\n")[1])
        paths = [
            *("/v1/windows", "/v1/windows/w1", "/v1/window-chain"),
            "/v1/windows/w1/log/checkpoint",
            f"/v1/windows/w1/log/tile/0/000.p/{size}",
            f"/v1/windows/w1/log/tile/entries/000.p/{size}",
            *(f"/v1/windows/w1/receipts/{index}/proof" for index in range(size)),
        ]
        shown = {path: self.get(path) for path in paths}
        assert all(each.status_code == 200 for each in shown.values())
        return {path: each.content for path, each in shown.items()}

    def bundle(self, folder: Path) -> Path:
        path = folder / "bundle.zip"
        path.write_bytes(self.scenario.verifier.get("/v1/windows/w1/bundle").content)
        return path

    @property
    def database(self) -> Path:
        file = self.scenario.service.store.file
        assert file is not None
        return file

    def back_up(self, name: str) -> None:
        """Copy the database's files, as a backup does."""
        cut_journal(self.scenario.service.store.engine)
        self.copies[name] = self.scenario.folder / f"{name}.db"
        shutil.copy(self.database, self.copies[name])

    def restore(self, name: str) -> None:
        """Give a service the backup instead of the database."""
        database = self.database
        self.scenario.service.stop()
        for suffix in ("-wal", "-shm"):
            database.with_name(database.name + suffix).unlink(missing_ok=True)
        shutil.copy(self.copies[name], database)
        self.scenario.restart()


@pytest.fixture
def finished(scenario: ProverScenario) -> Finished:
    return Finished(scenario).archive()
