"""The owner's commands against a prover, honest and cheating (spec 5.16)."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exact_windows import ask, texts
from owner_prover import (
    OWNER,
    HidingRow,
    MarkedRow,
    OwnedProver,
    ShortRow,
    export,
    owned_prover,
)
from ragaudit.client import offline, owner_commands
from ragaudit.client.checks import Facts
from ragaudit.client.cli import app as receipts
from ragaudit.client.state import read_key
from ragaudit.client.window import Pins, authenticate
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.ledger.errors import StepRejected
from ragaudit.ledger.messages.documents import DocumentProof, ProvenIndexRow, RowProof
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.shown import ShownWindow
from ragaudit.ledger.messages.signed_results import OwnerResult
from ragaudit.prover.backends.interface import Document
from ragaudit.prover.lifecycle import owning
from scenario import ProverScenario
from typer.testing import CliRunner

runner = CliRunner()
Make = Callable[..., ProverScenario]


@pytest.fixture(autouse=True)
def _embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window's embedder is at hand."""
    monkeypatch.setattr(offline, "load_embedder", lambda _window: HashEmbedder(16))


@pytest.fixture
def prover(make_scenario: Make, tmp_path: Path) -> Iterator[OwnedProver]:
    with owned_prover(make_scenario(), tmp_path) as made:
        yield made


def run(*arguments: object, code: int = 0, app: Any = owner_commands.app) -> str:
    result = runner.invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


def run_json(*arguments: object, code: int = 0, app: Any = owner_commands.app) -> Any:
    return json.loads(run(*arguments, "--json", code=code, app=app))


def audit(prover: OwnedProver, documents: Path, *more: object, code: int = 0) -> Any:
    given = ("audit", "--documents", documents, *prover.options, *more)
    return run_json(*given, code=code)


def test_a_key_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "owner.key"
    made = run_json("key", file)
    assert made["public"] == read_key(file).public.raw.hex()
    assert file.stat().st_mode & 0o077 == 0
    run("key", file, code=4)


def test_a_row_is_proven_and_checked_again_offline(prover: OwnedProver, tmp_path: Path) -> None:
    out, document = tmp_path / "row.json", texts()[3]
    said = run("row", "one-3", *prover.options, "--out", out)
    assert said == "one-3: row 3 of version 1 of the index of one; it is there, as proven.\n"
    proof = RowProof.parse(out.read_bytes())
    assert proof.row.content == document.content
    text, attributes = tmp_path / "text", tmp_path / "attributes"
    text.write_text(document.content)
    attributes.write_text(document.attributes)
    check = ("check", out, "--policy", prover.policy, "--text", text, "--attributes", attributes)
    shown = run_json(*check, app=receipts)
    assert [(s["name"], s["status"]) for s in shown["checks"]] == [
        ("window", "done"), ("log", "done"), ("row", "done"), ("text", "done"),
        ("vector", "not done"),
    ]  # fmt: skip
    run(*check, "--strict", code=5, app=receipts)
    asked = ("--prover", prover.url, "--policy", prover.policy)
    shown = run_json("check", out, *asked, "--text", text, app=receipts)
    assert {s["status"] for s in shown["checks"]} == {"done"}
    text.write_text("another text")
    said = run_json(*check, code=1, app=receipts)["error"]
    assert "another text or other metadata" in said
    assert run_json("row", "nobody", *prover.options, code=5)["problem"] == "not-judged"


def test_a_document_that_is_gone_has_a_receipt(prover: OwnedProver, tmp_path: Path) -> None:
    run("erased", "one-0", *prover.options, code=4)
    prover.change(texts()[1:])
    prover.close()
    out = tmp_path / "erased.json"
    instant = prover.scenario.policy().activation_instants[1]
    said = run("erased", "one-0", *prover.options, "--out", out)
    since = said.partition("in force since ")[2].rstrip(".\n")
    assert said.startswith("one-0 is gone from the index of one in window w1 since version 2")
    DocumentProof.parse(out.read_bytes())
    found = run_json("erased", out, "--policy", prover.policy, app=receipts)
    assert found["gone"] and found["version"] == 2 and found["since"] == since and instant
    assert "at the earliest" in found["sentence"]
    exact = ("--prover", prover.url, "--policy", prover.policy)
    assert run("erased", out, *exact, app=receipts) == said
    assert run("erased", "one-0", *prover.options, app=receipts) == said
    assert said.strip() in run_json("check", out, *exact, app=receipts)["checks"][-1]["detail"]
    assert "was never in" in run("erased", "nobody", *prover.options)
    assert "still there: row 1" in run("erased", "one-1", *prover.options, code=1)
    run("erased", "no-such-file", app=receipts, code=2)
    row = tmp_path / "row.json"
    run("row", "one-1", *prover.options, "--out", row)
    run("erased", row, "--policy", prover.policy, app=receipts, code=2)


def test_counts_are_those_of_the_log(prover: OwnedProver) -> None:
    prover.change(texts()[1:])
    shown = run_json("counts", *prover.options)
    assert [(v["rows"], v["null_rows"]) for v in shown["versions"]] == [(12, 0), (12, 1)]
    assert shown["in_force"] == 2
    assert "in force" in run("counts", *prover.options)


@pytest.mark.parametrize("sample", ["all", 4, 500])
def test_an_honest_index_passes_and_the_result_is_signed(
    prover: OwnedProver, tmp_path: Path, sample: object
) -> None:
    out = tmp_path / "result.json"
    documents = export(texts(), tmp_path / "export.jsonl")
    signed = ("--sample", sample, "--key", prover.key, "--out", out)
    found = audit(prover, documents, *signed)
    policy = Policy.parse(prover.policy.read_bytes())
    result = OwnerResult.verified(out.read_bytes(), policy, "one")
    assert result.result == found["result"] == ("WARNED" if sample == 4 else "PASSED")
    assert result.owned.vectors == result.owned.compared == (4 if sample == 4 else 12)
    assert found["findings"] == []


def test_vectors_of_the_export_are_compared_or_nothing_is_said_of_them(
    prover: OwnedProver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline, "load_embedder", lambda _window: None)
    documents = export(texts(), tmp_path / "plain.jsonl")
    found = audit(prover, documents, "--sample", "all", code=5)
    assert (found["without_vector"], found["result"]) == (12, "WARNED")
    vectors = HashEmbedder(16).embed([each.content for each in texts()])
    assert audit(prover, export(texts(), documents, vectors), "--sample", "all")["result"] == (
        "PASSED"
    )
    vectors = vectors.copy()
    vectors[5] = vectors[4]
    found = audit(prover, export(texts(), documents, vectors), "--sample", "all", code=1)
    assert found["findings"] == ["one-5 is committed with another vector"]


def changes() -> dict[str, tuple[list[Document], str]]:
    """Documents of the owner that the index does not have as they are, and what is said."""
    given = texts()
    other = replace(given[2], content="another text")
    return {
        "a text": ([*given[:2], other, *given[3:]], "one-2 is committed with another text"),
        "metadata": (
            [replace(given[0], attributes='{"lang":"fr"}'), *given[1:]], "one-0 is committed with",
        ),
        "one more": ([*given, Document("mine", "new")], "mine is not in the index"),
        "one less": (given[:-1], "row 11 holds one-11, which is none of your documents"),
    }  # fmt: skip


@pytest.mark.parametrize("kind", changes())
@pytest.mark.parametrize("sample", ["all", "50"])
def test_what_differs_is_found_in_both_directions(
    prover: OwnedProver, tmp_path: Path, kind: str, sample: str
) -> None:
    documents, said = changes()[kind]
    file = export(documents, tmp_path / "export.jsonl")
    found = audit(prover, file, "--sample", sample, code=1)
    assert found["result"] == "FAILED"
    [finding] = found["findings"]
    assert finding.startswith(said)


def test_a_document_that_the_index_dropped_is_missing(prover: OwnedProver, tmp_path: Path) -> None:
    prover.change(texts()[1:])
    file = export(texts(), tmp_path / "export.jsonl")
    found = audit(prover, file, "--sample", "all", code=1)
    assert found["findings"] == ["one-0 is marked as deleted"]
    assert found["committed"]["gone"] == 1 and found["owned"]["missing"] == 1
    assert audit(prover, file, "--sample", "all", "--version", 1)["result"] == "PASSED"
    said = run("audit", "--documents", file, "--sample", "all", *prover.options, code=1)
    assert "12 of 12 documents compared with version 2: 1 missing, 0 different." in said


# --- by a cheating prover


@pytest.mark.parametrize("sample", ["all", "50"])
def test_a_row_at_a_tenth_of_its_length_is_found(
    make_scenario: Make, tmp_path: Path, sample: str
) -> None:
    file = export(texts(), tmp_path / "export.jsonl")
    with owned_prover(make_scenario(index_builder=ShortRow), tmp_path) as prover:
        found = audit(prover, file, "--sample", sample, code=1)
        assert any(
            "row 0" in each and "committed at 0.10 of its length" in each
            for each in found["findings"]
        )
        assert all("row 0" in each or "one-0" in each for each in found["findings"])
        said = run("row", "one-0", *prover.options, code=1)
    assert "committed at 0.10 of its length: no search ranks it where it belongs" in said


@pytest.mark.parametrize("sample", ["all", "50"])
def test_a_living_row_that_is_marked_as_deleted_is_found(
    make_scenario: Make, tmp_path: Path, sample: str
) -> None:
    file = export(texts(), tmp_path / "export.jsonl")
    with owned_prover(make_scenario(index_builder=MarkedRow), tmp_path) as prover:
        assert audit(prover, file, "--sample", sample)["findings"] == []
        prover.change([*texts()[:-1], replace(texts()[-1], content="changed")])
        found = audit(prover, file, "--sample", sample, code=1)
        said = run("row", "one-0", *prover.options, code=1)
    assert any("row 0" in each and "marked as deleted, and it holds a document" in each
               for each in found["findings"])  # fmt: skip
    assert "marked as deleted, and it holds a document" in said


@pytest.mark.parametrize("sample", ["all", "50"])
def test_a_row_on_no_shelf_is_found(
    prover: OwnedProver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: str
) -> None:
    """The prover shows a row that is made up for the owner, under no root."""
    honest = owning._proven

    def made_up(*about: Any) -> ProvenIndexRow:
        row = honest(*about)
        return replace(row, salt=bytes(32)) if row.position == 3 else row

    monkeypatch.setattr(owning, "_proven", made_up)
    found = audit(prover, export(texts(), tmp_path / "e.jsonl"), "--sample", sample, code=1)
    assert any("row 3 is not proven" in each and "row of C_idx: not the committed value" in each
               for each in found["findings"])  # fmt: skip
    said = run("row", "one-3", *prover.options, code=1)
    assert "not the committed value" in said


def test_a_document_that_is_listed_under_another_id_is_found(
    make_scenario: Make, tmp_path: Path
) -> None:
    """Its owner is told that it is not there, and no row opens at its place."""
    with owned_prover(make_scenario(index_builder=HidingRow), tmp_path) as prover:
        file = export(texts(), tmp_path / "export.jsonl")
        found = audit(prover, file, "--sample", "all", code=1)
        prover.close()
        said = run("erased", "one-0", *prover.options)
    assert "was never in" in said
    assert any(each.startswith("row 0 is not proven") for each in found["findings"])
    assert "one-0 is shown in row 0, which is not proven" in found["findings"]


def test_what_is_hidden_from_its_owner_is_served_to_nobody_who_checks(
    make_scenario: Make, tmp_path: Path
) -> None:
    """An honest row's answer passes the same check; the hidden row opens to no account."""
    with owned_prover(make_scenario(index_builder=HidingRow), tmp_path) as prover:
        shown = prover.scenario.api.get("/v1/windows/w1").json()
        window = authenticate(ShownWindow.from_json(shown), Pins())
        for asked, hidden in ((1, False), (0, True)):
            # A text's own question ranks it first.
            file = ask(prover.scenario, texts()[asked].content, top_k=1)
            assert [row.id for row in file.private.rows] == [f"one-{asked}"]
            value = json.loads(file.encode())
            if not hidden:
                offline.check(value, window, Facts())
                continue
            with pytest.raises(StepRejected, match="not the committed value") as caught:
                offline.check(value, window, Facts())
            assert caught.value.step == 8


def test_a_place_that_is_not_shown_and_a_document_that_is_shown_twice_are_found(
    prover: OwnedProver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = owning.Owning._proven_rows
    file = export(texts(), tmp_path / "export.jsonl")

    def shown(places: list[int | None]) -> Any:
        def rows(self: Any, owned: Any, index: Any, _positions: Any) -> Any:
            return honest(self, owned, index, places)

        return rows

    for places in ([None, *range(1, 12)], [1, 1, *range(2, 12)]):
        monkeypatch.setattr(owning.Owning, "_proven_rows", shown(places))
        found = audit(prover, file, "--sample", "all", code=1)
        assert "row 0 is not proven: the provider does not show it" in found["findings"]
        assert found["committed"]["unknown"] == 1


def test_other_input_is_refused(prover: OwnedProver, tmp_path: Path) -> None:
    file = export(texts(), tmp_path / "export.jsonl")
    for sample in ("0", "-1", "some", "1e3"):
        audit(prover, file, "--sample", sample, code=2)
    audit(prover, file, "--sample", "1", "--key", prover.key, code=2)
    audit(prover, file, "--sample", "1", "--version", "9", code=2)
    other = tmp_path / "other.key"
    run("key", other)
    found = audit(prover, file, "--sample", "1", "--key", other, "--out", tmp_path / "o", code=2)
    assert "not the owner's key" in found["detail"] and not (tmp_path / "o").exists()
    assert OWNER.public.raw.hex() in found["detail"]
    secret = read_key(other).seed().hex()
    assert secret not in found["detail"]
    wrong = [each if each != prover.api_key else "guess" for each in prover.options]
    assert "unknown API key" in run("row", "one-0", *wrong, code=4)
    unpinned = prover.options[:-2]
    assert "nothing is pinned" in run("row", "one-0", *unpinned, code=2)
