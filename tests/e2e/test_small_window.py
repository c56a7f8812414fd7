"""One small window over HTTP, with real processes: from set-up to a verdict that re-checks."""

import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ragaudit.encoding.console import Console
from ragaudit.lab.demo.run import Demo, Options, Report
from ragaudit.lab.demo.services import command
from small_plan import WINDOW, small_plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    work = tmp_path_factory.mktemp("demo") / "work"
    yield Demo(Options(keep=work), Console(file=io.StringIO()), small_plan).run()


def checks(report: Report) -> dict[str, Any]:
    return {each["id"]: each for each in report.verdicts[WINDOW]["checks"]}


def test_an_honest_provider_passes(report: Report) -> None:
    predicate = report.verdicts[WINDOW]
    failed = [each for each in predicate["checks"] if each["status"] != "PASS"]
    assert not failed
    assert predicate["result"] == "PASS"
    assert len(predicate["checks"]) == 22
    assert not predicate["worthless"]
    assert predicate["counts"]["records"] == 22
    assert predicate["counts"]["anchored"] == predicate["counts"]["plain"] == 2


def test_nothing_was_complained_about(report: Report) -> None:
    assert report.traffic is not None
    assert report.traffic.complaints == []
    outcomes = {name: each for (name, _), each in report.traffic.outcomes.items()}
    assert {name: each.answered for name, each in outcomes.items()} == {
        "garden-0": 8, "garden-1": 3, "kitchen-0": 8, "kitchen-1": 3,
    }  # fmt: skip


def test_a_crash_between_promise_and_nonce_is_survived(report: Report) -> None:
    assert report.traffic is not None
    assert report.traffic.outcomes["garden-0", WINDOW].resumed


def test_an_honest_answer_survives_its_dispute(report: Report) -> None:
    assert report.traffic is not None
    assert report.traffic.outcomes["kitchen-0", WINDOW].disputed
    assert checks(report)["disputes"]["reason"].startswith("1 dispute")


def test_every_client_check_was_done(report: Report) -> None:
    assert report.traffic is not None
    for outcome in report.traffic.outcomes.values():
        assert {status for _, status in outcome.checks} == {"done"}


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (
            ["--require", "all"],
            0,
            "the verdict stands: PASS, integrity PASS, privacy PASS (22 of 22",
        ),
        (["--engine", "reference", "--records", "2"], 5, "nothing differs, but not everything"),
    ],
)
def test_the_verdict_stands_when_re_checked_offline(
    report: Report, options: list[str], code: int, said: str
) -> None:
    words = report.recheck[0].split()[1:]
    done = subprocess.run([*command(*words), *options], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.startswith(said)


def test_the_public_part_of_the_bundle_can_be_re_checked_alone(report: Report) -> None:
    bundle = report.evidence / WINDOW / "bundle-public.zip"
    done = subprocess.run(
        command("verifier", "recheck", str(bundle)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 5, done.stdout + done.stderr
    assert done.stdout.startswith("nothing differs, but not everything was repeated: ")


def test_no_secret_is_in_the_logs_or_in_the_evidence(report: Report) -> None:
    work = report.evidence.parent
    secrets = [
        (work / "prover" / "keys" / "operator.token").read_text().strip(),
        (work / "verifier" / "secrets" / "auditor-token").read_text().strip(),
        (work / "arbiter" / "arbiter.key").read_text().strip(),
        *(
            seed
            for path in (work / "clients").rglob("registration.json")
            for name in ("seed", "dispute_seed")
            if (seed := json.loads(path.read_text())[name]) is not None
        ),
        *(
            path.read_text().strip()
            for folder in (work / "prover" / "keys", work / "verifier" / "secrets")
            for path in folder.glob("*.key")
        ),
    ]
    assert len(secrets) >= 8
    files = [work / "prover.log", work / "verifier.log", *report.evidence.rglob("*.*")]
    for path in files:
        content = path.read_bytes()
        assert not [each for each in secrets if each.encode() in content], path


def test_receipts_can_be_checked_by_the_command(report: Report, tmp_path: Path) -> None:
    """With a saved window instead of a running provider."""
    policy = tmp_path / "policy.json"
    from ragaudit.encoding.canonical_json import dumps

    policy.write_bytes(dumps(report.policies[WINDOW]))
    window = tmp_path / "window.json"
    window.write_text(json.dumps(report.windows[WINDOW]))
    (first, *_) = sorted((report.evidence.parent / "clients").rglob("receipts/*.json"))
    words = command(
        "receipt", "check", str(first), "--window", str(window), "--policy", str(policy), "--json"
    )
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["result"] == "accepted"
    done_steps = [each["number"] for each in result["checks"] if each["status"] == "done"]
    assert done_steps == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    forged = json.loads(first.read_bytes())
    forged["answer"]["documents"].pop()
    broken = tmp_path / "forged.json"
    broken.write_bytes(dumps(forged))
    words[words.index(str(first))] = str(broken)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "step 4" in json.loads(done.stdout)["error"]
