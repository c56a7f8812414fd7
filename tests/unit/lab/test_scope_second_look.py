"""What times say must be said twice: a store that was slow for a while is not accused."""

from pathlib import Path

import pytest
import scope_runs
from ragaudit.lab.attacks.scope.exchange import Answer, Request
from ragaudit.lab.attacks.scope.probes import Canary
from ragaudit.lab.attacks.scope.running import Options, run

ROUNDS = 3
ORACLE = "existence-of-file"


class Timed:
    """A client with times of its own: what exists takes longer, in the looks that say so."""

    def __init__(self, canaries: dict[str, list[Canary]], slow_looks: set[int]) -> None:
        self.canaries, self.slow_looks = canaries, slow_looks
        self.asked = dict.fromkeys(canaries, 0)

    def send(self, request: Request) -> Answer:
        if request.path.endswith("/search"):
            return Answer("200", " ".join(one.text for one in self.canaries[request.by]))
        other = next(tenant for tenant in self.canaries if tenant != request.by)
        look = self.asked[request.by] // (ROUNDS * len(self.canaries[other]))
        self.asked[request.by] += 1
        there = any(one.planted and one.id in request.path for one in self.canaries[other])
        slow = there and look in self.slow_looks
        return Answer("404", "{}", seconds=0.02 if slow else 0.01)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("slow_looks", "looks", "accused"), [(set(), 1, False), ({0}, 2, False), ({0, 1}, 2, True)]
)
def test_times_must_accuse_twice(
    slow_looks: set[int], looks: int, accused: bool, tmp_path: Path
) -> None:
    options = Options(rounds=ROUNDS, only=frozenset({ORACLE}))
    plan, client = scope_runs.openai_plan(tmp_path, lambda each: Timed(each, slow_looks), options)
    report = run(plan)
    assert {one.kind for one in report.findings} == ({"timing"} if accused else set())
    expected = looks * ROUNDS * len(client.canaries["acme"])
    assert client.asked == dict.fromkeys(client.canaries, expected)
    assert report.requests <= plan.requests
    for found in report.findings:
        assert found.p_value is not None and found.p_value <= plan.options.error / 4
