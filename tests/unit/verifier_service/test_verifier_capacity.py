"""Limits of the operator's below the specification's: said at start, and before a window begins."""

from pathlib import Path
from typing import Any

import pytest
from ragaudit.verifier.service.capacity import SPECIFIED, check_capacity, shortfalls
from ragaudit.verifier.service.windows import State
from ragaudit.verifier.settings import MIB, Limits
from verifier_service_harness import WINDOW, VerifierScenario, problem_of

# Slots and queries of the scenario are 4 each: a log of 38 entries, 22 of them beside records.
NEEDED = {
    "checkpoints": 38,
    "entries": 22,
    "records_bytes": 2**20 + 38 * (8 + 4096),
    "json_bytes": 22 * (2 * 4096 + 256),
}


def test_the_limits_as_shipped_are_the_specifications() -> None:
    chapter = Path(__file__).parents[3] / "docs" / "spec" / "08-services.md"
    (sentence,) = [
        paragraph.replace("\n", " ")
        for paragraph in chapter.read_text(encoding="utf-8").split("\n\n")
        if paragraph.startswith("*What V takes.*")
    ]
    assert f"{SPECIFIED.checkpoints:,} checkpoints" in sentence
    assert f"{SPECIFIED.entries:,} entries" in sentence
    assert f"{SPECIFIED.records_bytes:,} bytes" in sentence
    assert f"{SPECIFIED.submitted_bytes // MIB} MiB of each" in sentence
    assert f"{SPECIFIED.json_bytes // MIB} MiB in one call" in sentence
    assert list(shortfalls(Limits())) == []


def test_less_is_said_at_start(
    tmp_path: Path, auditor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    least: dict[str, Any] = dict.fromkeys(
        ["json_bytes", "anonymous_bytes", "dispute_bytes", "index_bytes", "records_bytes"], 1024
    )
    limits = Limits(**least, entries=1, checkpoints=1, version_bytes=1024, submitted_bytes=MIB)
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running(scenario.settings.model_copy(update={"limits": limits})):
        assert scenario.client.get("/readyz").status_code == 200
    said = [each.getMessage() for each in caplog.records if "limits." in each.getMessage()]
    assert len(said) == 9
    line = "limits.entries is 1, below the specification's 400000: windows that may need more"
    assert any(each.startswith(line) for each in said)


def test_a_window_that_would_fail_is_not_registered(tmp_path: Path, auditor: Any) -> None:
    for name, needed in NEEDED.items():
        scenario = VerifierScenario(tmp_path / name, auditor)
        own: dict[str, Any] = {name: needed - 1}
        with scenario.running(scenario.settings.model_copy(update={"limits": Limits(**own)})):
            said = problem_of(scenario.register(), 422, "rejected")["detail"]
            assert f"limits.{name} of this verifier is {needed - 1}" in said, name
            assert f"below the specification's {getattr(SPECIFIED, name)}" in said
        check_capacity(scenario.policy(), Limits(**{name: needed}))


def test_what_the_specification_itself_does_not_give_is_no_reason(
    tmp_path: Path, auditor: Any
) -> None:
    scenario = VerifierScenario(tmp_path, auditor)
    check_capacity(scenario.policy(queries_per_account=1_000_000), Limits())
    check_capacity({"slots": "many"}, Limits(entries=1))  # no policy: check 1 says so


def test_limits_that_shrink_after_the_registration_keep_it_from_being_countersigned(
    tmp_path: Path, auditor: Any
) -> None:
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running():
        assert scenario.register().status_code == 201
        scenario.put_indexes()
        scenario.service.registrar._limits = Limits(checkpoints=37)
        said = problem_of(scenario.countersign(), 422, "rejected")["detail"]
        assert "limits.checkpoints of this verifier is 37" in said
        shown = scenario.client.get(f"/v1/windows/{WINDOW}").json()
        assert shown["state"] == State.REGISTERED
        # Nothing was decided: with room again, the same window goes on.
        scenario.service.registrar._limits = Limits()
        assert scenario.countersign().status_code == 200
