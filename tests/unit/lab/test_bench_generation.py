"""`ragaudit bench generation`: what it measures is made and checked in earnest."""

import json

import numpy as np
from ragaudit import core
from ragaudit.lab.bench import generation
from ragaudit.lab.bench.command import app
from ragaudit.verifier.engines import engine
from typer.testing import CliRunner

SIZES = generation.GenerationSizes(rows=20, dimension=3, records=6, charged=4, uses=2, group=3)


def test_what_is_charged_is_within_the_budgets_and_due() -> None:
    charges = generation.Charges(SIZES)
    statement, charged, _ = charges.budget
    assert len(charged) == len(statement.charges) // 32 == 6
    assert sum(map(len, charged)) == 24
    group, due, _ = charges.group
    assert len(group.entries) == len(due) == 3
    # The float baseline decides as the integers do: these scores are below 2^24.
    assert charges.score()[0].nonzero()[0].tolist() == due[0]
    engine("core").verify_charges([(group, charges.prove_group())])


def test_both_arguments_are_measured_beside_the_bare_decision() -> None:
    found = {each.name: each for each in generation.generation(SIZES, 1, 0.0)}
    assert found[generation.PROVE_BUDGET].baseline == generation.COUNT
    assert found[generation.VERIFY_GROUP].baseline == generation.SCORE
    # mx = 4, my = 5, k = 6; mx = 2, my = 5, k = 6.
    assert found[generation.PROVE_BUDGET].size_bytes == 32 * (9 + 2 + 27 + 12)
    assert found[generation.PROVE_GROUP].size_bytes == 32 * (3 * 16 + 30 + 13 + 21 + 12)


def test_the_command_reports() -> None:
    arguments = ["generation", "--rows", "20", "--dim", "3", "--records", "6", "--charged", "4"]
    arguments += ["--group", "3", "--runs", "1", "--seconds", "0", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["scenario"] == "generation"
    names = [each["name"] for each in report["measurements"]]
    assert len(names) == 12
    # The steps are parts of the whole.
    place = names.index(generation.LOG)
    steps = report["measurements"][place + 1 : place + 5]
    assert all(each["name"].startswith("of it: ") for each in steps)
    assert sum(each["lowest"] for each in steps) < report["measurements"][place]["highest"]


def test_growth_is_beside_the_base() -> None:
    base = generation.generation(SIZES, 1, 0.0)
    found = {each.name: each for each in generation.growth(SIZES, base, 1, 0.0)}
    assert len(found) == 6 + 2 + 2 + 4
    assert found["prove the budgets, R doubled"].baseline == generation.PROVE_BUDGET
    assert found["verify a group of charges, T doubled"].baseline == generation.VERIFY_GROUP
    assert all(each.ratio is not None and each.ratio > 0 for each in found.values())


def test_what_a_question_is_charged_is_committed_to() -> None:
    charges = generation.Charges(SIZES)
    (due, *_) = charges.score()
    positions = np.flatnonzero(due).tolist()
    assert charges.charge() == core.commit_selection(positions, bytes(32))


def test_charging_goes_through_the_provers_code() -> None:
    charges = generation.Charges(SIZES)
    with generation.prover(charges.work, 4, 2, 1) as desk:
        first, second = desk.charge(), desk.charge()
    bodies = (first.body, second.body)
    assert [body.number for body in bodies] == [0, 1]
    assert bodies[0].charge == core.commit_selection(first.rows.tolist(), first.blinding)
    assert 0 < len(first.rows) <= 20
