"""The commands and the program of docs/planning.md."""

import json
import sys
from pathlib import Path

import pytest
from chapters import DOCS, blocks, run_program, shell
from ragaudit.cli.plan.collection import FEWEST_SUGGESTED
from ragaudit.cli.plan.run import SIGMAS
from ragaudit.privacy.guarantees import EMPTY_ADVANTAGE, WEAK_ADVANTAGE, Strength
from ragaudit.privacy.planning.budget import Targets, budget
from ragaudit.privacy.planning.retrieval import GOOD_GAIN, USELESS_GAIN, Service
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.backends.stored import StoredDocuments
from ragaudit.prover.store.database import Store

SECTION = (DOCS / "planning.md").read_text()
SCRIPT = blocks(SECTION, "sh")[0]
PROSE = " ".join(SECTION.split())


@pytest.fixture
def provider(tmp_path: Path) -> Path:
    """A folder with an initialised prover, six documents of the tenant shop, and questions."""
    (tmp_path / "prover").mkdir()
    (tmp_path / "prover/prover.yaml").write_text("provider: example.org\n")
    store = Store.create(f"sqlite:///{tmp_path / 'prover/prover.db'}")
    texts = ("Returns within a month.", "Open from nine.", "Delivery is free.", "Two years of "
             "warranty.", "Gift cards never expire.", "Parking is behind the shop.")  # fmt: skip
    StoredDocuments(store).add("shop", [Document(f"d{n}", text) for n, text in enumerate(texts)])
    store.close()
    (tmp_path / "questions.txt").write_text("When do you open?\nCan I send it back?\n")
    return tmp_path


@pytest.mark.slow
def test_the_commands_run(provider: Path) -> None:
    output = shell(SCRIPT, provider)
    assert "sigma = 9.233901" in output and "k_max" in output
    plan = json.loads((provider / "plan.json").read_text())
    assert plan["retrieval"]["indexes"] == [
        {"name": "shop", "rows": 6, "dimension": 256, "questions": 2, "question_source": "as given"}
    ]
    assert [row["windows"] for row in plan["over_windows"]] == [2, 3, 4]
    assert len(list((provider / "plots").iterdir())) == 8


@pytest.mark.slow
def test_the_recall_figures_are_those_of_the_command(tmp_path: Path) -> None:
    """Three places; the last may differ where another machine's embeddings round otherwise."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in SECTION.splitlines()
        if line.startswith(("| sigma | 0", "| recall@5"))
    ]
    printed = dict(zip(rows[0][1:], map(float, rows[1][1:]), strict=True))
    first = SCRIPT.splitlines()[0].replace("--no-simulate", "--seed chapter --json")
    found = json.loads(shell(first, tmp_path))["retrieval"]
    points = {point["sigma"]: point for point in found["points"]}
    assert printed.pop("0") == pytest.approx(found["quantised_recall"]["mean"], abs=2e-3)
    assert printed.pop("9.234 (planned)") == pytest.approx(
        next(each for each in found["points"] if each["planned"])["recall"]["mean"], abs=2e-3
    )
    for sigma, recall in printed.items():
        assert recall == pytest.approx(points[sigma]["recall"]["mean"], abs=2e-3)
    widest = max(each["recall"]["high"] - each["recall"]["low"] for each in found["points"])
    assert widest / 2 < 0.02
    assert found["questions"] == 300 and len(found["indexes"]) == 3


def test_the_program_runs(tmp_path: Path) -> None:
    *points, last = run_program(
        [sys.executable, "-c", blocks(SECTION, "python")[0]], tmp_path
    ).splitlines()
    assert points[0].startswith("9.233901 19.8")
    assert len(points) == 5 and points[1].startswith("0.01 ")
    assert last.endswith("useless, empty")


def test_the_numbers_of_the_rules_are_the_codes() -> None:
    assert f"from {float(EMPTY_ADVANTAGE)} on" in PROSE
    assert f"from {float(WEAK_ADVANTAGE)} on" in PROSE
    assert (USELESS_GAIN, GOOD_GAIN) == (0.5, 0.9)
    assert "half of the way" in PROSE and "nine tenths of the way" in PROSE
    assert len(SIGMAS) == 13 and "thirteen others" in PROSE
    assert f"fewer than {FEWEST_SUGGESTED}," in PROSE
    assert all(f"`{each.value}`" in PROSE for each in (*Service, *Strength))
    made = budget(Targets("8", "0.000001", 50, 5, "0.00001"))
    assert f"in the first example: {made.coalition_sigma}" in PROSE
