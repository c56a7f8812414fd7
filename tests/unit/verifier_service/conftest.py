"""Fixtures of the verifier service's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from recording_auditor import RecordingAuditor
from verifier_service_harness import Story, VerifierScenario


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
