"""The catalogue is complete, its words are right, and its commands run it."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from importlib.metadata import entry_points
from typing import Any

import pytest
from cheating_behaviours import BEHAVIOURS
from for_each import for_each
from procedure_cases import use_cached_table
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks import (
    CATALOGUE,
    Cheat,
    ConstructedCheat,
    Intrusion,
    ServiceCheat,
    find,
    run,
)
from ragaudit.lab.attacks.cheat import BEFORE_THE_WINDOW, FAMILIES
from ragaudit.lab.attacks.cli import app
from ragaudit.lab.attacks.serve import main, service_cheat
from ragaudit.prover.answering.query import Stages
from ragaudit.prover.service import Components
from ragaudit.verifier.procedure import CHECKS
from typer import Typer
from typer.testing import CliRunner

runner = CliRunner()


def test_every_behaviour_has_its_entry_and_every_entry_its_behaviour() -> None:
    assert tuple(BEHAVIOURS) == FAMILIES
    listed = {(family, name) for family, names in BEHAVIOURS.items() for name in names.values()}
    assert listed == {(each.family, each.name) for each in CATALOGUE}
    assert len({each.name for each in CATALOGUE}) == len(CATALOGUE)


@for_each("cheat", CATALOGUE)
def test_an_entry_says_what_there_is_to_say(cheat: Cheat) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", cheat.name)
    assert cheat.description.endswith(".")
    assert cheat.reason
    order = [check.id for check in CHECKS]
    assert list(cheat.checks) == sorted(cheat.checks, key=order.index)
    assert bool(cheat.checks) != isinstance(cheat, Intrusion)
    if cheat.refused:
        assert set(cheat.checks) <= BEFORE_THE_WINDOW
    if isinstance(cheat, ServiceCheat):
        assert cheat.staging == "service"
        honest = Components()
        changed = cheat.components(honest)
        for name, part in cheat.parts.items():
            assert getattr(changed, name) is part
            assert _is_part(part, getattr(honest, name))
    elif isinstance(cheat, Intrusion):
        assert cheat.staging == "intrusion"
        assert all(callable(getattr(guard.owner, guard.name)) for guard in cheat.guards)
    else:
        assert isinstance(cheat, ConstructedCheat)
        assert cheat.staging == "constructed"
        assert cheat.why


def _is_part(part: Any, honest: Any) -> bool:
    """Whether it fits in the place of the honest part: of stages, one and no other is replaced."""
    if not isinstance(part, Stages):
        return issubclass(part, honest)
    classes = [(getattr(part, each.name), getattr(honest, each.name)) for each in fields(part)]
    replaced = [(stage, of) for stage, of in classes if stage is not of]
    return len(replaced) == 1 and all(issubclass(stage, of) for stage, of in replaced)


def test_a_service_cheat_overrides_little() -> None:
    """One component each, but for broken promises: it takes two to forget one."""
    several = [c.name for c in CATALOGUE if isinstance(c, ServiceCheat) and len(c.parts) != 1]
    assert sorted(several) == [
        "a-reply-that-never-ends",
        "an-old-answer-after-a-reveal",
        "claims-crowded-out",
        "garbage-after-a-reveal",
        "intake-flooded",
        "promise-not-kept",
    ]


def test_every_check_but_two_catches_a_cheat_of_the_catalogue() -> None:
    """Refusals and epsilon have no cheat in the list; the procedure's own tests have."""
    caught = {name for each in CATALOGUE for name in each.checks}
    assert {check.id for check in CHECKS} - caught == {"log", "refusals", "epsilon"}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="no cheat 'x'"):
        find("x")
    with pytest.raises(UnsupportedError, match="no service stages this cheat"):
        service_cheat("counter-repeat")
    with pytest.raises(UnsupportedError, match="staging intrusion"):
        run("handover-flooded")
    assert service_cheat("half-the-sigma").family == "SELECTION"


def test_run_stages_a_cheat_of_either_kind() -> None:
    use_cached_table()
    assert run("counter-repeat").failed == ("counters",)
    assert run("sigma-too-small-for-the-claim").result == "REFUSED"


def test_the_command_lists() -> None:
    plain = runner.invoke(app, ["list"])
    assert plain.exit_code == 0
    lines = plain.stdout.splitlines()
    assert len(lines) == len(CATALOGUE)
    assert lines[0].split() == [
        "SEED", "equal-keys-for-all-slots", "service", "FAIL", "by", "seed",
    ]  # fmt: skip
    listed = json.loads(runner.invoke(app, ["list", "--json"]).stdout)
    assert [each["name"] for each in listed] == [each.name for each in CATALOGUE]
    assert {each["staging"] for each in listed} == {"service", "constructed", "intrusion"}
    assert lines[-1].split()[-4:] == ["REPELLED", "by", "the", "service"]


def test_the_command_runs() -> None:
    use_cached_table()
    done = runner.invoke(app, ["run", "tie-kept"])
    assert done.exit_code == 0
    assert done.stdout.rstrip().endswith("FAIL")
    value = json.loads(runner.invoke(app, ["run", "counter-repeat", "--json"]).stdout)
    assert value["result"] == "FAIL"
    assert value["caught"] is True
    assert [c["id"] for c in value["checks"] if c["status"] == "FAIL"] == ["counters"]
    plain = runner.invoke(app, ["run", "noise-stored-as-an-index"])
    assert plain.exit_code == 0
    assert plain.stdout.rstrip().endswith("REPELLED")
    value = json.loads(runner.invoke(app, ["run", "windows-without-end", "--json"]).stdout)
    assert (value["result"], value["caught"]) == ("REPELLED", True)
    assert value["cheat"]["reason"] in value["said"]
    unknown = runner.invoke(app, ["run", "x"])
    assert unknown.exit_code == 2
    assert "no cheat 'x'" in unknown.stderr


def test_the_cheating_service_lists_and_refuses() -> None:
    serve = Typer()
    serve.command()(main)
    assert "half-the-sigma" in runner.invoke(serve, ["list"]).stdout
    for name, why in (("counter-repeat", "no service stages this cheat"), ("x", "no cheat 'x'")):
        refused = runner.invoke(serve, [name])
        assert refused.exit_code == 2
        assert why in refused.stderr
    missing = runner.invoke(serve, ["half-the-sigma", "--config", "/nonexistent/prover.yaml"])
    assert missing.exit_code == 2
    assert "cannot read" in missing.stderr


def test_the_command_group_is_an_entry_point() -> None:
    found = {each.name: each.value for each in entry_points(group="ragaudit.commands")}
    assert found["attack"] == "ragaudit.lab.attacks.cli:app"
