"""Fixtures of the verifier service's tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from databases import verifier_tables
from recording_auditor import RecordingAuditor
from verifier_service_harness import Story, VerifierScenario


@pytest.fixture
def on_each_engine(
    engine_name: str, make_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every verifier that the test opens keeps its database on this engine."""
    if engine_name == "postgresql":
        url = make_database("postgresql", verifier_tables)
        monkeypatch.setenv("RAGAUDIT_VERIFIER__DATABASE", url)


@pytest.fixture
def auditor() -> RecordingAuditor:
    return RecordingAuditor()


@pytest.fixture
def scenario(tmp_path: Path, auditor: RecordingAuditor) -> Iterator[VerifierScenario]:
    with VerifierScenario(tmp_path, auditor).running() as running:
        yield running


@pytest.fixture
def story(scenario: VerifierScenario) -> Story:
    scenario.open_window()
    return Story(scenario)
