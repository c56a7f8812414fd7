"""`ragaudit attack membership` against a RAG that runs as a process of its own."""

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import toy_rag
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.cli import app
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.signed import EnvelopeRejected
from ragaudit.ledger.messages.signed_results import MembershipResult, ResultReference
from typer.testing import CliRunner, Result

KEY = "sk-very-secret-value"


class Test:
    """A folder with documents, a template and a key."""

    __test__ = False

    def __init__(self, folder: Path, size: int = 25) -> None:
        self.folder = folder
        every = toy_rag.documents(2 * size, seed=1)
        self.members = toy_rag.write(folder / "in.jsonl", every[:size])
        self.others = toy_rag.write(folder / "out.jsonl", every[size:])
        self.output = folder / "test"
        self.key = folder / "key"
        self.key.write_text(KEY + "\n")
        self.key.chmod(0o600)

    def arguments(self, url: str, *more: str) -> list[str]:
        template = self.folder / "rag.json"
        template.write_text(
            json.dumps(
                {
                    "url": url, "headers": {"X-Key": "{key}"}, "body": {"question": "{query}"},
                    "answer": "answer", "citations": "sources[*]",
                }
            )
        )  # fmt: skip
        return [
            "membership", "--endpoint", str(template), "--members", str(self.members),
            "--non-members", str(self.others), "--output", str(self.output), "--key-file",
            str(self.key), "--yes", *more,
        ]  # fmt: skip

    def invoke(self, url: str, *more: str, code: int) -> Result:
        result = CliRunner().invoke(app, self.arguments(url, *more))
        assert result.exit_code == code, (result.output, result.exception)
        return result

    def run(self, url: str, *more: str, code: int) -> str:
        return self.invoke(url, *more, code=code).output

    def report(self, url: str, *more: str, code: int) -> dict[str, Any]:
        result = self.invoke(url, "--json", *more, code=code)
        # What it costs is told to whoever reads JSON, too.
        assert " questions (" in result.stderr
        found: dict[str, Any] = json.loads(result.stdout)
        return found


@pytest.fixture
def test(tmp_path: Path) -> Test:
    return Test(tmp_path)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    # Fewer permutations: the least p is .01 of a test, .005 of matching.
    monkeypatch.setattr("ragaudit.lab.attacks.membership.judging.PERMUTATIONS", 99)
    monkeypatch.setattr("ragaudit.lab.attacks.membership.documents._PERMUTATIONS", 199)
    monkeypatch.setattr(
        "ragaudit.lab.attacks.membership.endpoints.Caller.__init__.__defaults__", (lambda _: None,)
    )


# --- what is found ---


@pytest.mark.slow
def test_a_leaky_rag_is_found_out(test: Test) -> None:
    with toy_rag.running(test.members, "leaky") as url:
        found = test.report(url, "--claim-epsilon", "0.5", code=1)
    assert found["verdict"] == "FAIL"
    # Were it not leaky, both would have a probability of at most 1 % and 2.5 %.
    assert found["p_permutation"] == 0.01
    assert found["exact_low"] > 0.7
    assert json.loads((test.output / "result.json").read_text()) == found
    assert found["claim"]["refuted"] and found["claim"]["cap"] == pytest.approx(0.62246, abs=1e-5)
    assert set(found["exploratory"]) >= {"strategy verbatim", "strategy citation", "strategy fact"}


@pytest.mark.slow
def test_a_rag_that_holds_both_classes_tells_nothing(test: Test) -> None:
    both = test.folder / "both.jsonl"
    both.write_text(test.members.read_text() + test.others.read_text())
    with toy_rag.running(both, "leaky") as url:
        result = CliRunner().invoke(app, test.arguments(url, "--json"))
    found = json.loads(result.stdout)
    # Exchangeable: below .01 with probability .01; the seeds are fixed.
    assert found["p_permutation"] > 0.01
    assert found["verdict"] != "FAIL"
    assert result.exit_code == {"PASS": 0, "INCONCLUSIVE": 5}[found["verdict"]]


@pytest.mark.slow
def test_answers_that_are_all_the_same_test_nothing(test: Test) -> None:
    with toy_rag.running(test.members, "silent") as url:
        said = test.run(url, "--strategies", "verbatim", code=5)
    assert "INCONCLUSIVE: All answers are the same" in said
    found = json.loads((test.output / "result.json").read_text())
    assert found["primary"]["auc"] == 0.5 and "All scores are equal" in str(found["warnings"])


@pytest.mark.slow
def test_an_endpoint_that_declines_everything_is_asked_no_further(test: Test) -> None:
    """As one does whose model is misspelled: that nothing was told is no PASS."""
    with toy_rag.running(test.members, "filter") as url:
        said = test.run(url, "--strategies", "verbatim", code=4)
        again = test.run(url, "--strategies", "verbatim", code=4)
    assert "no answer to any of 20 questions, status 400" in said and "another --output" in again
    assert (test.output / "exchanges.jsonl").read_bytes().count(b"\n") == 20


@pytest.mark.slow
def test_every_strategy_of_the_literature_runs(test: Test) -> None:
    with toy_rag.running(test.members, "leaky") as url:
        found = test.report(url, "--strategies", "s2mia,interrogation,mask", code=1)
    assert found["exploratory"]["strategy mask"] > 0.9
    assert found["exploratory"]["strategy s2mia"] > 0.9


# --- what is stored ---


@pytest.mark.slow
def test_the_result_is_signed_and_its_page_shows_no_document(test: Test) -> None:
    private = PrivateKey.generate()
    key = test.folder / "sign.key"
    key.write_text(private.seed().hex())
    key.chmod(0o600)
    policy, path = Window().policy.canonical, test.folder / "policy.json"
    path.write_bytes(policy)
    with toy_rag.running(test.members, "leaky") as url:
        arguments = ("--strategies", "verbatim", "--claim-epsilon", "0.5", "--sign-key", str(key),
                     "--policy", str(path))  # fmt: skip
        shown = test.run(url, *arguments, code=1)
    assert "FAIL: These questions tell" in shown and "CLAIM REFUTED" in shown
    assert "150 questions (150 left), about " in shown
    envelope = (test.output / "result.dsse.json").read_bytes()
    found = MembershipResult.verify(envelope, private.public)
    assert (found.verdict, found.claim_refuted) == ("FAIL", True)
    stored = (test.output / "exchanges.jsonl").read_bytes()
    assert found.subjects == {
        "exchanges.jsonl": hashlib.sha256(stored).hexdigest(),
        "public/policy.json": hashlib.sha256(policy).hexdigest(),
    }
    # What a verifier asks of a result that its verdict is to refer to.
    reference = ResultReference.of("membership", envelope, private.public, policy)
    assert reference.digest == hashlib.sha256(envelope).digest()
    assert found.plan == hashlib.sha256((test.output / "plan.json").read_bytes()).hexdigest()
    body = found.to_json()["predicate"]
    assert body["result"] == "FAILED"
    assert body["failedTests"] == ["membership_auc", "claimed_epsilon"]
    digest = hashlib.sha256(envelope).hexdigest()
    assert (test.output / "result.sha256").read_text().startswith(digest)
    with pytest.raises(EnvelopeRejected):
        MembershipResult.verify(envelope, PrivateKey.generate().public)
    page = (test.output / "report.html").read_text()
    assert "Membership test: FAIL" in page
    assert not any(
        json.loads(line)["text"] in page for line in test.members.read_text().splitlines()
    )


@pytest.mark.slow
def test_the_key_is_stored_nowhere(test: Test) -> None:
    with toy_rag.running(test.members, "echo") as url:
        test.run(url, "--strategies", "verbatim", code=5)
    assert "key [redacted]" in (test.output / "exchanges.jsonl").read_text()
    for path in test.output.iterdir():
        assert KEY not in path.read_text(), path


@pytest.mark.slow
def test_a_killed_test_goes_on_and_finds_the_same(test: Test) -> None:
    with toy_rag.running(test.members, "leaky") as url:
        whole = test.report(url, "--strategies", "verbatim,fact", code=1)
        asked = (test.output / "exchanges.jsonl").read_bytes()
        test.output.rename(test.folder / "whole")
        arguments = test.arguments(url, "--strategies", "verbatim,fact", "--json")
        process = subprocess.Popen(
            [sys.executable, "-c", "from ragaudit.lab.attacks.cli import app; app()", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stored = test.output / "exchanges.jsonl"
        deadline = time.monotonic() + 120
        while not stored.exists() or stored.read_bytes().count(b"\n") < 5:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        kept = stored.read_bytes()
        assert 5 <= kept.count(b"\n") < 300
        # Killed within a line, too.
        stored.write_bytes(kept[: kept.rfind(b"\n") + 1] + b'{"probe": {"docu')
        again = test.report(url, "--strategies", "verbatim,fact", code=1)
    assert again == whole
    assert stored.read_bytes() == asked


@pytest.mark.slow
def test_the_order_is_random_and_the_same_for_a_seed(test: Test) -> None:
    with toy_rag.running(test.members, "silent") as url:
        test.run(url, "--strategies", "verbatim", code=5)
    lines = (test.output / "exchanges.jsonl").read_text().splitlines()
    order = [json.loads(line)["probe"]["document"] for line in lines]
    inside = {json.loads(line)["id"] for line in test.members.read_text().splitlines()}
    half = sum(each in inside for each in order[:75])
    # Hypergeometric, 150 questions: six standard deviations are 18.4 about 37.5.
    assert 19 <= half <= 56


# --- what is refused ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "what"),
    [
        ("dead", "no answer: RemoteProtocolError"),
        ("text", "cannot be read: not JSON"),
        (
            "elsewhere",
            "answer at answer: no text (expected a path into the reply, which has: reply)",
        ),
        ("overloaded", "answers 503"),
    ],
)
def test_an_endpoint_that_does_not_answer_ends_the_test(test: Test, mode: str, what: str) -> None:
    with toy_rag.running(test.members, mode) as url:
        assert what in test.run(url, code=3)


@pytest.mark.slow
def test_a_slow_endpoint_ends_the_test(test: Test) -> None:
    with toy_rag.running(test.members, "slow") as url:
        assert "no answer: ReadTimeout" in test.run(url, "--timeout", "0.2", code=3)


def test_a_locked_endpoint_is_not_asked_again(test: Test) -> None:
    with toy_rag.running(test.members, "locked") as url:
        assert "answers 401" in test.run(url, code=4)


@pytest.mark.slow
def test_a_rate_that_is_limited_is_waited_for(test: Test) -> None:
    with toy_rag.running(test.members, "flaky") as url:
        found = test.report(url, "--strategies", "verbatim", code=1)
    assert found["verdict"] == "FAIL" and found["declined"] == 0


def nobody(test: Test, *more: str, code: int) -> str:
    """Run where nobody listens: it must be refused before the first question."""
    return test.run("http://127.0.0.1:9/ask", *more, code=code)


def test_unbalanced_classes_are_refused(test: Test) -> None:
    lines = test.others.read_text().splitlines(keepends=True)
    test.others.write_text("".join(lines[:12]))
    assert "unbalanced: 25 members, 12 non-members" in nobody(test, code=4)
    test.others.write_text("".join(lines[:3]))
    assert "at least 10 of each" in nobody(test, code=4)


@pytest.mark.slow
def test_classes_that_texts_tell_apart_are_refused_and_the_pool_helps(test: Test) -> None:
    foreign = [
        {"id": f"x{at}", "text": "Quarterly revenue of the bank rose while interest on loans and "
         f"deposits fell by {at} percent, analysts said on Monday in a note to investors."}
        for at in range(25)
    ]  # fmt: skip
    matched = toy_rag.documents(60, seed=9)
    toy_rag.write(test.others, foreign)
    refused = nobody(test, code=4)
    assert "texts alone tell members from others" in refused and "--pool" in refused
    pool = toy_rag.write(test.folder / "pool.jsonl", [*foreign, *matched])
    with toy_rag.running(test.members, "silent") as url:
        arguments = test.arguments(url, "--json", "--strategies", "verbatim")
        at = arguments.index("--non-members")
        arguments[at : at + 2] = ["--pool", str(pool)]
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 5, result.output
    plan = json.loads((test.output / "plan.json").read_text())
    assert {each["id"] for each in plan["others"]} <= {each["id"] for each in matched}
    assert len(plan["others"]) == 25


def test_a_document_in_both_classes_is_refused(test: Test) -> None:
    first = json.loads(test.members.read_text().splitlines()[0])
    rest = test.others.read_text().splitlines(keepends=True)[1:]
    test.others.write_text(json.dumps(first) + "\n" + "".join(rest))
    assert "twice" in nobody(test, code=2)
    test.others.write_text(json.dumps({**first, "id": "other"}) + "\n" + "".join(rest))
    assert "is a member's" in nobody(test, code=2)


@pytest.mark.slow
def test_another_plan_in_the_same_folder_is_refused(test: Test) -> None:
    with toy_rag.running(test.members, "silent") as url:
        test.run(url, "--strategies", "verbatim", code=5)
        assert "begun with other" in test.run(url, "--strategies", "fact", code=4)
        (test.output / "exchanges.jsonl").write_bytes(b"{}\n")
        assert "no exchange" in test.run(url, "--strategies", "verbatim", code=2)


@pytest.mark.parametrize(
    ("more", "code", "what"),
    [
        (("--budget", "10"), 4, "450 questions"),
        (("--strategies", "guess"), 2, "no strategy 'guess'"),
        (("--threshold", "2"), 2, "--threshold"),
        (("--claim-epsilon", "-1"), 2, "epsilon"),
        (("--claim-mu", "-1"), 2, "mu"),
        (("--claim-epsilon", "1", "--claim-mu", "1"), 2, "--claim-mu: two claims"),
        (("--pool", "nowhere"), 2, "--pool"),
        (("--key-file", "nowhere"), 2, "cannot read a secret file"),
        (("--endpoint", "nowhere"), 2, "neither openai:URL"),
        (("--endpoint", "openai:http://127.0.0.1:9/v1"), 2, "--model"),
        (("--endpoint", "ragaudit:http://127.0.0.1:9"), 2, "--window"),
        (("--members", "nowhere"), 2, "--members nowhere"),
        (("--policy", "nowhere"), 2, "--policy nowhere"),
        (("--output", "/dev/null/x"), 2, "--output /dev/null/x: cannot write"),
    ],
)
def test_bad_input_is_refused(test: Test, more: tuple[str, ...], code: int, what: str) -> None:
    assert what in nobody(test, *more, code=code)
    assert not (test.output / "exchanges.jsonl").exists()


def test_a_missing_key_is_said_before_anything_is_written(test: Test) -> None:
    arguments = test.arguments("http://127.0.0.1:9/ask")
    at = arguments.index("--key-file")
    result = CliRunner().invoke(app, arguments[:at] + arguments[at + 2 :])
    assert result.exit_code == 2 and "--key-file: no key" in result.stderr
    assert not test.output.exists()


def test_a_key_that_would_stand_in_any_answer_is_refused(test: Test) -> None:
    test.key.write_text("x\n")
    result = CliRunner().invoke(app, test.arguments("http://127.0.0.1:9/ask"))
    assert result.exit_code == 2
    assert "--key-file: a key of 1 bytes (expected 8 or more)" in result.stderr
    assert not test.output.exists()


def test_nothing_is_asked_without_consent(test: Test) -> None:
    arguments = [each for each in test.arguments("http://127.0.0.1:9/") if each != "--yes"]
    result = CliRunner().invoke(app, arguments, input="n\n")
    assert result.exit_code == 5 and "nothing was asked" in result.output
    # Nobody is there to be asked: < /dev/null.
    result = CliRunner().invoke(app, arguments, input="")
    assert result.exit_code == 5 and "nothing was asked" in result.output
    assert stat.S_IMODE(test.key.stat().st_mode) == 0o600
