"""Parts of the demonstration: corpus, questions, and services that are awaited and ended."""

import io
import json
import os
import sys
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.cli import corpus as corpus_of_cli
from ragaudit.cli.corpus import (
    LARGEST_COSINE,
    PASSAGES_PER_TENANT,
    Passage,
    candidates,
    distinct,
    load_corpus,
)
from ragaudit.cli.processes import ServiceFailed, ServiceProcess, free_port
from ragaudit.embedders.base import embed_quantised
from ragaudit.embedders.registry import load
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.demo import command, show
from ragaudit.lab.demo.plan import (
    EPSILON_ACC,
    LARGEST_PACE,
    TOP_K,
    Claim,
    UtilityRow,
    epsilon_of,
    make_plan,
    measure_pace,
    utility_table,
)
from ragaudit.lab.demo.run import cheats, find, is_service
from ragaudit.lab.demo.traffic import Complaint
from ragaudit.privacy.accounting.report import epsilon_report
from ragaudit.prover.settings import WindowSettings, window_settings
from typer.testing import CliRunner

CLAIM = Claim("null-replace", 40, 2, "0.000001", "0.00001")


def shown(action: Any) -> str:
    console = Console(file=io.StringIO(), width=140)
    action(console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_epsilon_is_rounded_up_or_absent() -> None:
    value = epsilon_of("3.5", "null-replace", 40, "0.000001")
    assert value is not None
    assert Decimal("9.6") < value < Decimal("9.8")
    assert epsilon_of("0.1", "null-replace", 40, "0.000001") is None


def test_more_noise_finds_less_and_promises_more() -> None:
    random = np.random.default_rng(7)
    index = quantise_rows(random.standard_normal((200, 16)))
    queries = index[:40]
    rows = utility_table(["10", "0.01", "1"], {"t": index}, {"t": queries}, 5, CLAIM)
    assert [row.sigma for row in rows] == ["0.01", "1", "10"]
    assert rows[0].recall > 0.8
    assert rows[0].recall > rows[1].recall
    assert rows[2].recall < 0.2
    assert rows[0].epsilon_audit is None
    assert rows[2].epsilon_acc is not None
    assert rows[2].epsilon_audit is not None
    assert rows[2].epsilon_audit > rows[2].epsilon_acc


def test_the_table_marks_the_chosen_sigma_and_says_it_in_words() -> None:
    rows = [
        UtilityRow("0.01", 0.9, None, None),
        UtilityRow("3.4", 0.01, Decimal("10"), Decimal("15")),
    ]
    text = shown(lambda console: show.show_utility(console, rows, "3.4", TOP_K))
    (marked,) = [line for line in text.splitlines() if "<- this window" in line]
    assert "3.4" in marked
    assert "no finite bound" in text
    assert "in no verdict" in text
    assert "answers almost" in text


def test_a_verdict_shows_each_check_with_its_reason() -> None:
    table = epsilon_report(
        "4", "replace", 1, 1, 2, "0.00001", Fraction(1, 2**100), 5, [1, 1], "20", "0.00001"
    )
    predicate = {
        "window": "w1",
        "result": "FAIL",
        "worthless": True,
        "checks": [
            {"number": 1, "id": "policy", "status": "PASS", "reason": "in time"},
            {"number": 19, "id": "selection", "status": "FAIL", "reason": "record [5]"},
        ],
        "epsilon": table.to_json(),
    }
    text = shown(lambda console: show.show_verdict(console, predicate))
    for part in (
        "selection", "record [5]", str(table.headline.epsilon), "its class is empty",
        table.risk.membership_advantage, "WORTHLESS", "FAIL",
    ):  # fmt: skip
        assert part in text


def test_a_verdict_shows_both_claims() -> None:
    predicate = {
        "window": "w1",
        "result": "PASS",
        "worthless": False,
        "checks": [
            {"number": 1, "id": "policy", "status": "PASS", "reason": "in time"},
            {"number": 21, "id": "epsilon", "status": "NOT APPLICABLE", "reason": "adds no noise"},
        ],
        "claims": {
            "integrity": {"result": "PASS", "statement": "What was asked was answered."},
            "privacy": {"result": "NOT CLAIMED", "statement": "No epsilon [is] claimed."},
        },
        "epsilon": {},
    }
    text = " ".join(shown(lambda console: show.show_verdict(console, predicate)).split())
    for part in (
        "NOT APPLICABLE", "integrity: PASS. What was asked", "privacy: NOT CLAIMED. No eps",
    ):  # fmt: skip
        assert part in text
    assert "epsilon_audit" not in text


def test_complaints_are_counted_by_kind() -> None:
    complaints = [Complaint("a", "w", "bad"), Complaint("b", "w", "bad"), Complaint("a", "w", "x")]
    text = shown(lambda console: show.show_complaints(console, complaints))
    assert "a, b" in text
    assert shown(lambda console: show.show_complaints(console, [])) == ""


def test_the_plan_is_what_the_demonstration_promises() -> None:
    plan = make_plan(load(), sigma=None, seed=None)
    assert sum(map(len, plan.corpus.values())) >= 1500
    assert len(plan.corpus) >= 3
    assert len(plan.accounts) >= 12
    assert sum(each.anchored for each in plan.accounts) == len(plan.accounts) // 2
    assert [each.name for each in plan.accounts if each.crashes and each.anchored]
    assert len([each for each in plan.accounts if each.disputes]) == 1
    main, small, exact = plan.windows
    assert (main.mode, small.mode, exact.mode) == ("B", "A", "A")
    assert (main.noised, small.noised, exact.noised) == (True, True, False)
    assert plan.questions(main.name) >= 300 > plan.questions(small.name) > 0
    assert 300 > plan.questions(exact.name) > 0
    assert not any(plan.anchored(each, exact.name) for each in plan.accounts)
    assert any(plan.anchored(each, small.name) for each in plan.accounts)
    window_settings(WindowSettings(), exact.overrides(1.0))
    most = max(len(each.questions[main.name]) for each in plan.accounts)
    assert most <= main.terms["queries_per_account"]
    terms = main.overrides(2.0)
    assert terms["audit"]["beta"] == "0.1"
    assert terms["audit"]["tenants"]["eta"] == "0.0009765625"
    assert terms["length_seconds"] == 2 * main.length
    assert terms["epsilon_acc"] == EPSILON_ACC
    epsilon = plan.claim.epsilon_acc(plan.sigma())
    assert epsilon is not None
    assert epsilon <= 10


def test_the_pace_is_bounded() -> None:
    assert 1.0 <= measure_pace() <= LARGEST_PACE


def test_cheats_are_listed_and_found() -> None:
    listed = CliRunner().invoke(command.app, ["--cheat", "list", "--json"])
    assert listed.exit_code == 0
    names = json.loads(listed.stdout)
    assert {"half-the-sigma", "row-of-norm-128"} <= set(names)
    assert {each.name for each in cheats()} == set(names)
    assert is_service(find("half-the-sigma"))
    with pytest.raises(UnsupportedError, match="no cheating provider"):
        find("honesty")


def test_a_cheat_that_no_service_can_stage_is_staged_here() -> None:
    constructed = next(each for each in cheats() if not is_service(each))
    result = CliRunner().invoke(command.app, ["--cheat", constructed.name, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["result"] == constructed.result


@pytest.fixture(scope="module")
def corpus() -> dict[str, list[Passage]]:
    return load_corpus()


def test_corpus_has_three_tenants_and_enough_passages(corpus: dict[str, list[Passage]]) -> None:
    assert len(corpus) >= 3
    assert sum(map(len, corpus.values())) >= 1500
    for passages in corpus.values():
        assert len(passages) <= PASSAGES_PER_TENANT
        assert len({passage.id for passage in passages}) == len(passages)
        assert all(len(passage.id.encode()) <= 512 for passage in passages)
    corpus_of_cli._docstrings.cache_clear()
    assert load_corpus() == corpus


def test_questions_are_many_and_far_apart(corpus: dict[str, list[Passage]]) -> None:
    embedder = load()
    taken: list[np.ndarray[tuple[int], np.dtype[np.int8]]] = []
    total = 0
    for passages in corpus.values():
        questions = list(candidates(passages))
        vectors = embed_quantised(embedder, questions)
        chosen = distinct(vectors, taken, 1000)
        taken += [vectors[i] for i in chosen]
        total += len(chosen)
        assert all(questions[i].endswith("?") for i in chosen)
        assert len(chosen) >= 90
    rows = np.array(taken, dtype=np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T - 2 * np.eye(len(rows))
    assert cosines.max() <= LARGEST_COSINE + 1e-12
    assert total >= 400


SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def start(tmp_path: Path, program: str) -> ServiceProcess:
    port = free_port()
    return ServiceProcess(
        "toy",
        [sys.executable, "-c", program, str(port)],
        url=f"http://127.0.0.1:{port}",
        log=tmp_path / "toy.log",
    )


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_ready_then_ended(tmp_path: Path) -> None:
    with start(tmp_path, SERVER) as service:
        service.wait_ready(20)
        service.check_alive()
        assert alive(service.pid)
    assert not alive(service.pid)


def test_an_error_inside_the_block_ends_the_process(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), start(tmp_path, SERVER) as service:
        raise KeyboardInterrupt
    assert not alive(service.pid)


def test_a_service_that_ends_shows_its_log(tmp_path: Path) -> None:
    with (
        start(tmp_path, "import sys; sys.exit('the disk is on fire')") as service,
        pytest.raises(ServiceFailed, match="the disk is on fire"),
    ):
        service.wait_ready(20)


def test_a_service_that_is_never_ready_is_reported(tmp_path: Path) -> None:
    with (
        start(tmp_path, "import time; print('busy', flush=True); time.sleep(60)") as service,
        pytest.raises(ServiceFailed, match="not ready"),
    ):
        service.wait_ready(1)


def test_a_deaf_process_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragaudit.cli.processes._GRACE_SECONDS", 0.2)
    program = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('deaf', flush=True); time.sleep(60)"
    )
    with start(tmp_path, program) as service:
        while "deaf" not in service.tail():
            time.sleep(0.05)
    assert not alive(service.pid)
