"""What cannot be tested is refused, with the field's name."""

import json
from pathlib import Path

import pytest
import scope_runs
from leaking_ports import Answering, filled
from ragaudit.encoding.commands import ExitCode, NotJudged
from ragaudit.lab.attacks.cli import app
from ragaudit.lab.attacks.scope.exchange import Answer, Request, Secrets
from ragaudit.lab.attacks.scope.judging import SCHEMA
from ragaudit.lab.attacks.scope.probes import Canary
from ragaudit.lab.attacks.scope.running import Options, Patience, run
from surface_app import NAMES, MemoryPort, serving, surface_app
from typer.testing import CliRunner

ACME = {"acme": "key-acme"}
BOTH = {**ACME, "globex": "key-globex"}


def test_an_endpoint_that_does_not_answer(tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "openai", "http://127.0.0.1:9", BOTH, dimension=None)
    code, said = scope_runs.refused(path)
    assert code == ExitCode.UNAVAILABLE and "url" in said and "ConnectError" in said


def test_a_wrong_key(tmp_path: Path) -> None:
    with serving(surface_app(MemoryPort())) as number:
        url, keys = f"http://127.0.0.1:{number}", {"acme": "nobodys-key"}
        path = scope_runs.target(tmp_path, "openai", url, keys, collections=NAMES)
        code, said = scope_runs.refused(path)
    assert code == ExitCode.REFUSED and "tenants.acme.key_file" in said
    assert "nobodys-key" not in said


def test_canaries_that_nobody_planted(tmp_path: Path) -> None:
    with serving(surface_app(MemoryPort())) as number:
        url = f"http://127.0.0.1:{number}"
        path = scope_runs.target(tmp_path, "openai", url, BOTH, collections=NAMES)
        code, said = scope_runs.refused(path)
    assert code == ExitCode.INCOMPLETE
    assert "tenants.acme: its own key does not find its canaries" in said


def test_one_key_and_planted_canaries_are_enough(tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "openai", "http://x", ACME, collections=NAMES)
    with serving(surface_app(filled(MemoryPort(), tmp_path / "canaries.jsonl"))) as number:
        url = f"http://127.0.0.1:{number}"
        scope_runs.target(tmp_path, "openai", url, ACME, collections=NAMES)
        report = scope_runs.scope(path, "--only", "nearest", "--only", "cache")
    assert report["result"] == "CLEAN" and report["controlled"] == ["acme"]
    results = {one["probe"]: one["result"] for one in report["tried"]}
    assert results == {"nearest": "NOTHING", "cache": "SKIPPED"}


def test_one_key_without_canaries_of_another(tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "openai", "http://127.0.0.1:9", ACME)
    file = tmp_path / "canaries.jsonl"
    lines = file.read_text().splitlines()
    own = [line for line in lines if json.loads(line)["tenant"] == "acme"]
    file.write_text("\n".join(own) + "\n")
    code, said = scope_runs.refused(path)
    assert code == ExitCode.BAD_INPUT and "canaries: nobody to look for" in said


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"url": "localhost"}, "url"),
        ({"store": "pgvector"}, "url"),
        ({"store": "faiss"}, "store"),
        ({"dimension": 3}, "dimension"),
        ({"unknown": 1}, "unknown"),
        ({"canaries": "nowhere.jsonl"}, "canaries"),
        ({"tenants": {"globex": {"collection": ""}}}, "tenants.globex.collection"),
        ({"tenants": {"globex": {"key_file": "missing.key"}}}, "missing.key"),
    ],
)
def test_settings_that_cannot_be_used(
    change: dict[str, object], where: str, tmp_path: Path
) -> None:
    given = {"store": "openai", "url": "http://127.0.0.1:9", **change}
    store, url = str(given.pop("store")), str(given.pop("url"))
    path = scope_runs.target(tmp_path, store, url, ACME, **given)  # type: ignore[arg-type]
    code, said = scope_runs.refused(path)
    assert code == ExitCode.BAD_INPUT and where in said


def test_nobody_has_a_key(tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "openai", "http://127.0.0.1:9", {})
    assert "key_file" in scope_runs.refused(path)[1]


def test_a_key_that_others_may_read(tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "openai", "http://127.0.0.1:9", ACME)
    (tmp_path / "acme.key").chmod(0o644)
    assert "others may read" in scope_runs.refused(path)[1]


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["--only", "nothing"], "--only"),
        (["--max-requests", "10"], "--max-requests"),
        (["--plant"], "--plant"),
        (["--only", "write-id"], "--only"),
        (["--page", "page.pdf"], "--page"),
        (["--signed", "x.json"], "--signed"),
        (["--error", "2"], "--error"),
    ],
)
def test_options_that_cannot_be_used(arguments: list[str], where: str, tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "openai", "http://127.0.0.1:9", ACME)
    assert where in scope_runs.refused(path, *arguments)[1]


@pytest.mark.parametrize(
    ("store", "why"),
    [("prover", "no account's key"), ("mcp", "search and fetch"), ("dify", "a retrieval")],
)
def test_a_surface_without_writes_is_named(store: str, why: str, tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, store, "http://127.0.0.1:9", ACME)
    code, said = scope_runs.refused(path, "--writes")
    told = " ".join(said.split())
    assert code == ExitCode.BAD_INPUT and f"({store})" in told and why in told


def test_writes_without_canaries_that_can_be_planted_again(tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "chroma", "http://127.0.0.1:9", ACME)
    code, said = scope_runs.refused(path, "--writes")
    assert code == ExitCode.BAD_INPUT and "planted again" in said and "--plant" in said


def test_canaries_of_another_dimension(tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "chroma", "http://127.0.0.1:9", ACME)
    scope_runs.target(tmp_path, "chroma", "http://127.0.0.1:9", ACME, dimension=32)
    assert "dimension: canaries of dimension 16" in scope_runs.refused(path)[1]


def test_the_budget_is_told_before_the_first_request(tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "openai", "http://127.0.0.1:9", BOTH, collections=NAMES)
    assert "requests at most for 2 pairs of tenants" in scope_runs.refused(path)[1]


def test_pages_and_reports_have_no_key_and_no_markup_of_others(tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "openai", "http://x", BOTH, collections=NAMES)
    port = filled(Answering(), tmp_path / "canaries.jsonl")
    port.rows = {
        tenant: [*rows, *(type(rows[0])("x", "<script>```", {}, rows[0].vector) for _ in range(1))]
        for tenant, rows in port.rows.items()
    }
    with serving(surface_app(port)) as number:
        scope_runs.target(tmp_path, "openai", f"http://127.0.0.1:{number}", BOTH, collections=NAMES)
        for name in ("page.html", "page.md"):
            report = scope_runs.scope(
                path, "--only", "nearest", "--page", str(tmp_path / name),
                "--report", str(tmp_path / "report.json"),
            )  # fmt: skip
            assert json.loads((tmp_path / "report.json").read_text()) == report
            page = (tmp_path / name).read_text()
            assert "LEAK" in page and "curl" in page and "$ACME_KEY" in page
            assert "<script>" not in page or name.endswith(".md")
            assert not any(key in page + str(report) for key in BOTH.values())


def test_the_same_seed_sends_the_same_requests(tmp_path: Path) -> None:
    path = scope_runs.target(tmp_path, "chroma", "http://x", BOTH, collections=NAMES)
    with serving(surface_app(filled(Answering(), tmp_path / "canaries.jsonl"))) as number:
        scope_runs.target(tmp_path, "chroma", f"http://127.0.0.1:{number}", BOTH, collections=NAMES)
        first, again, other = (
            [
                one["request"]
                for one in scope_runs.scope(path, "--only", "nearest", *seed)["findings"]
            ]
            for seed in (["--seed", "1"], ["--seed", "1"], ["--seed", "2"])
        )
    assert first == again != other


def test_the_schema_is_printed() -> None:
    result = CliRunner().invoke(app, ["scope", "--schema"])
    assert result.exit_code == 0 and json.loads(result.stdout) == json.loads(json.dumps(SCHEMA))


def test_canaries_are_drawn_once(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    command = ["canaries", str(file), "--tenants", "acme,globex", "--dimension", "16"]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert len(file.read_text().splitlines()) == 40 and file.stat().st_mode & 0o777 == 0o600
    again = CliRunner().invoke(app, command)
    assert again.exit_code == ExitCode.BAD_INPUT and "a new file" in again.stderr
    twice = CliRunner().invoke(app, ["canaries", str(tmp_path / "x"), "--tenants", "a,a"])
    assert twice.exit_code == ExitCode.BAD_INPUT and "--tenants" in twice.stderr


def test_a_key_that_would_stand_in_any_text_is_refused(tmp_path: Path) -> None:
    for key, least in (("x", "1 bytes"), ("sevenby", "7 bytes")):
        path = scope_runs.target(tmp_path, "openai", "http://127.0.0.1:9", {**ACME, "globex": key})
        code, said = scope_runs.refused(path)
        assert code == ExitCode.BAD_INPUT
        assert f"tenants.globex.key_file: a key of {least} (expected 8 or more)" in said


def test_keys_are_replaced_where_they_are_words_of_their_own() -> None:
    short, long = "handbook", "0123456789abcdef"
    secrets = Secrets({"acme": short, "globex": long, "odd": 'quo"te+key'})
    texts = {
        "handbooks and myhandbook stay": "handbooks and myhandbook stay",
        "Bearer handbook": "Bearer <key of acme>",
        "Bearer%20handbook&x": "Bearer%20<key of acme>&x",
        '"a\\nhandbook"': '"a\\n<key of acme>"',
        "x-handbook_": "x-<key of acme>_",
        f"prefix{long}suffix": "prefix<key of globex>suffix",
        'quo"te+key': "<key of odd>", r"quo\"te+key": "<key of odd>",
        "quo%22te%2Bkey": "<key of odd>",
    }  # fmt: skip
    for text, expected in texts.items():
        assert secrets.redacted(text) == expected
    assert Secrets({}).redacted("handbook") == "handbook"


def test_planted_rows_that_show_up_later_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prover in front of a store takes writes up with its next version."""
    shown: list[bool] = []
    waits: list[float] = []
    told: list[str] = []

    class Later:
        def __init__(self, canaries: dict[str, list[Canary]]) -> None:
            self.texts = [one.text for rows in canaries.values() for one in rows if one.planted]

        def send(self, request: Request) -> Answer:
            return Answer("200", json.dumps(self.texts if any(shown) else []))

        def close(self) -> None:
            pass

    plan, _ = scope_runs.openai_plan(tmp_path, Later, Options(only=frozenset({"nearest"})))
    monkeypatch.setattr(plan.store, "plant", lambda _tenant: [])
    monkeypatch.setattr(plan.store, "remove", lambda _tenant: [])
    plan.plant = True

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        shown.append(len(waits) == 3)

    run(plan, patience=Patience(600, told.append, sleep))
    assert waits == [5.0, 5.0, 5.0]
    assert told[0].startswith("acme does not find what was planted yet") and "600 s" in told[0]
    shown.clear()
    waits.clear()
    with pytest.raises(NotJudged, match="its own key does not find its canaries"):
        run(plan, patience=Patience(12, told.append, waits.append))
    assert waits == [5.0, 5.0, 2.0]
    plan.plant = False
    with pytest.raises(NotJudged):
        run(plan, patience=Patience(12, told.append, waits.append))
    assert len(waits) == 3
