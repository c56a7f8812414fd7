"""Fixtures of the verifier service's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from verifier_service_harness import Desk, RecordingAuditor, Story


@pytest.fixture
def auditor() -> RecordingAuditor:
    return RecordingAuditor()


@pytest.fixture
def desk(tmp_path: Path, auditor: RecordingAuditor) -> Iterator[Desk]:
    with Desk(tmp_path, auditor).running() as running:
        yield running


@pytest.fixture
def story(desk: Desk) -> Story:
    desk.open_window()
    return Story(desk)
