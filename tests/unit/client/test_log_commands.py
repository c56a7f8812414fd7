"""`ragaudit receipt`, of logs: quorums, time stamps, and the chain of a provider's windows.

Missing records: `test_missing_command`.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragaudit.client.cli import app
from ragaudit.encoding.canonical_json import dumps
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.log.notes import COSIGNATURE_V1, SigningKey
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.log.tlog_proof import TlogProof
from receipt_scene import COSIGNER, LOG, scene, tlog_proof
from time_authority import Authority, AuthorityServer
from typer.testing import CliRunner
from vector_scripts import VECTORS, script

RUNNER = CliRunner()
OTHER = SigningKey("other.example", COSIGNATURE_V1, PrivateKey.from_seed(b"\x31" * 32))
LISTED = f"log {LOG.verifier_key}\n"
WITNESSES = f"witness regulator {COSIGNER.verifier_key}\nwitness other {OTHER.verifier_key}\n"
PROOF = str(scene().file().public.proof)


def judged(folder: Path, data: bytes, trust: str, *options: str) -> tuple[int, Any]:
    (folder / "file").write_bytes(data)
    (folder / "trust").write_text(trust, "utf-8")
    result = CliRunner().invoke(
        app,
        ["quorum", str(folder / "file"), "--trust", str(folder / "trust"), "--json", *options],
    )
    return result.exit_code, json.loads(result.stdout)


def proven(proof: str | None = PROOF) -> bytes:
    file = scene().file()
    return dumps({**file.to_json(), "public": replace(file.public, proof=proof).to_json()})


def test_a_receipt_with_the_quorum(tmp_path: Path) -> None:
    trust = LISTED + WITNESSES + "group G any regulator other\nquorum G\n"
    code, found = judged(tmp_path, proven(), trust)
    assert (code, found["reached"], found["cosigned"]) == (0, True, {"regulator": 1201})
    public = dumps(scene().file().public.to_json())
    assert judged(tmp_path, public, trust) == (0, found)
    note = TlogProof.parse(PROOF.encode()).checkpoint
    assert judged(tmp_path, note, trust) == (0, found)


def test_a_receipt_without_the_quorum(tmp_path: Path) -> None:
    trust = LISTED + WITNESSES + "group G all regulator other\nquorum G\n"
    code, found = judged(tmp_path, proven(), trust)
    assert (code, found["reached"], found["known"]) == (5, False, 2)


def test_what_a_person_reads(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(proven())
    (tmp_path / "trust").write_text(LISTED + WITNESSES + "quorum other\n", "utf-8")
    command = ["quorum", str(tmp_path / "file"), "--trust", str(tmp_path / "trust")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 5
    assert result.stdout == "quorum other NOT reached: cosigned by regulator (1 of 2)\n"


def test_the_log_may_be_named_beside_a_policy_that_lists_none(tmp_path: Path) -> None:
    trust = WITNESSES + "quorum regulator\n"
    assert judged(tmp_path, proven(), trust, "--log-key", str(LOG.verifier_key))[0] == 0
    code, problem = judged(tmp_path, proven(), trust)
    assert (code, problem["problem"]) == (1, "note-rejected")


@pytest.mark.parametrize(
    ("proof", "words"),
    [
        (tlog_proof(b"another leaf", 3).encode().decode(), "another root"),
        (tlog_proof(b"leaf", 4).encode().decode(), "another index"),
        ("not a proof", "not a tlog-proof"),
        (PROOF[:-12] + "AAAA" + PROOF[-8:], "does not verify"),
    ],
)
def test_a_false_proof_is_told_from_a_missing_quorum(
    tmp_path: Path, proof: str, words: str
) -> None:
    code, problem = judged(tmp_path, proven(proof), LISTED + WITNESSES + "quorum regulator\n")
    assert code == 1, problem
    assert words in problem["detail"]


def test_a_receipt_whose_proof_is_outstanding_is_not_judged(tmp_path: Path) -> None:
    code, problem = judged(tmp_path, proven(None), LISTED + WITNESSES + "quorum regulator\n")
    assert code == 3
    assert "outstanding" in problem["detail"]


def test_a_malformed_policy_is_named_with_its_line(tmp_path: Path) -> None:
    code, problem = judged(tmp_path, proven(), LISTED + "witness w1\nquorum none\n")
    assert (code, problem["problem"]) == (2, "malformed-trust-policy")
    assert f"{tmp_path}/trust, line 2" in problem["detail"]


def test_the_example_of_the_chapter_is_a_policy() -> None:
    chapter = Path(__file__).parents[3] / "docs" / "tenant-developer.md"
    text = chapter.read_text("utf-8").partition("## Cosigners of your own")[2]
    example = re.search(r"\n((?:    [^\n]+\n)+)", text)
    assert example is not None
    lines = [line.removeprefix("    ") for line in example[1].splitlines()]
    keys = {"..1": str(COSIGNER.verifier_key), "..2": str(OTHER.verifier_key)}
    for short, key in keys.items():
        lines = [re.sub(rf"\S+{re.escape(short)}\b", key, line) for line in lines]
    trust = TrustPolicy.parse("".join(line + "\n" for line in lines).encode())
    assert (trust.quorum, len(trust.cosigners)) == ("both", 2)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def server(authority: Authority) -> Iterator[AuthorityServer]:
    with closing(AuthorityServer(authority)) as made:
        yield made


@pytest.fixture
def receipt(tmp_path: Path) -> Path:
    path = tmp_path / "answer.json"
    path.write_bytes(dumps(scene().file().to_json()))
    return path


def run(*words: str | Path) -> tuple[int, Any]:
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    return result.exit_code, json.loads(result.stdout)


def test_a_stamp_is_kept_and_checked_offline(
    receipt: Path, server: AuthorityServer, authority: Authority
) -> None:
    code, made = run("stamp", receipt, "--authority", server.url, "--roots", authority.roots)
    assert (code, made["origin"]) == (0, LOG.name)
    token = receipt.with_name("answer.json.tsr")
    again = run("stamped", receipt, "--token", token, "--roots", authority.roots)
    assert again == (0, made)
    # Of the checkpoint, whoever has it in whatever form.
    note = receipt.with_name("checkpoint")
    note.write_bytes(TlogProof.parse(PROOF.encode()).checkpoint)
    assert run("stamped", note, "--token", token, "--roots", authority.roots) == (0, made)
    words = ["stamped", str(receipt), "--token", str(token), "--roots", str(authority.roots)]
    shown = CliRunner().invoke(app, words).stdout
    assert shown.startswith(f"{LOG.name} had its {made['size']} entries by 20")


def test_another_answer_is_not_kept(
    receipt: Path, server: AuthorityServer, authority: Authority
) -> None:
    options = ("--authority", server.url, "--roots", authority.roots)
    old = authority.answer
    other = old(b"no request")
    for answer, code in ((other, 1), (b"hello", 2), (bytes(2**17), 2)):
        server.answer = lambda _query, answer=answer: answer  # type: ignore[misc]
        assert run("stamp", receipt, *options)[0] == code
    server.status, server.answer = 503, old
    assert run("stamp", receipt, *options)[0] == 3
    assert not receipt.with_name("answer.json.tsr").exists()


def test_an_authority_that_is_away(
    receipt: Path, server: AuthorityServer, authority: Authority
) -> None:
    nobody = "http://127.0.0.1:9"
    assert run("stamp", receipt, "--authority", nobody, "--roots", authority.roots)[0] == 3
    assert run("stamp", receipt, "--authority", "ftp://x", "--roots", authority.roots)[0] == 2
    missing = receipt.with_name("none.pem")
    assert run("stamp", receipt, "--authority", server.url, "--roots", missing)[0] == 2


def test_a_receipt_without_a_proof_has_nothing_to_stamp(
    receipt: Path, server: AuthorityServer, authority: Authority
) -> None:
    file = scene().file()
    public = replace(file.public, proof=None).to_json()
    receipt.write_bytes(dumps({**file.to_json(), "public": public}))
    code, problem = run("stamp", receipt, "--authority", server.url, "--roots", authority.roots)
    assert code == 3 and "outstanding" in problem["detail"]


def test_the_commands_of_the_chapter_run(
    receipt: Path, server: AuthorityServer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = Path(__file__).parents[3] / "docs" / "tenant-developer.md"
    lines = chapter.read_text("utf-8").splitlines()
    commands = [line for line in lines if line.startswith("    ragaudit receipt stamp")]
    assert len(commands) == 2
    monkeypatch.chdir(receipt.parent)
    (receipt.parent / "tsa-roots.pem").write_bytes(authority.roots.read_bytes())
    for command in commands:
        words = shlex.split(command.replace("https://tsa.example", server.url))[2:]
        assert CliRunner().invoke(app, words).exit_code == 0


VECTOR: dict[str, Any] = json.loads((VECTORS / "chain.json").read_bytes())
PINNED = ("--verifier-key", VECTOR["verifier"])


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.json"
    # As curl saves it, in any spelling.
    path.write_text(json.dumps(json.loads(VECTOR["chain"]), indent=2))
    return path


def verified(*options: str) -> tuple[int, str]:
    done = RUNNER.invoke(app, ["verify-windows", *options])
    return done.exit_code, done.output


def test_a_chain_is_shown_window_by_window(chain: Path) -> None:
    code, output = verified(str(chain), *PINNED)
    lines = output.splitlines()
    assert (code, len(lines)) == (0, 3)
    assert lines[0].startswith("w1: begins anew; ended with 5 entries; log key rag.example.com/")
    assert lines[2].startswith("w3: continues w2; has not ended;")
    code, output = verified(str(chain), *PINNED, "--json")
    windows = json.loads(output)["windows"]
    assert code == 0 and [each["continues"] for each in windows] == [None, "w1", "w2"]


def test_a_provider_is_asked(intercept: Callable[..., None]) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/v1/window-chain"
        return httpx.Response(200, text=VECTOR["chain"])

    intercept(handle)
    assert verified("--prover", "http://provider", *PINNED)[0] == 0


def test_a_false_chain_is_false(chain: Path) -> None:
    value = json.loads(chain.read_text())
    chain.write_text(json.dumps({**value, "windows": value["windows"][1:]}))
    code, output = verified(str(chain), *PINNED)
    assert (code, "not listed before it" in output) == (1, True)
    chain.write_text(json.dumps({**value, "windows": 1}))
    assert verified(str(chain), *PINNED)[0] == 2
    chain.write_text("{")
    assert verified(str(chain), *PINNED)[0] == 2


def test_a_later_window_that_begins_anew_is_told_by_the_exit_code(chain: Path) -> None:
    made = script("make_chain")
    windows = [made.chained("w1", 0, None)[0], made.chained("w2", 1, None)[0]]
    chain.write_text(json.dumps({**json.loads(VECTOR["chain"]), "windows": windows}))
    code, output = verified(str(chain), *PINNED)
    assert (code, "w2: begins anew" in output) == (5, True)


def test_pins_are_demanded_and_compared(chain: Path) -> None:
    code, output = verified(str(chain))
    assert (code, "nothing is pinned" in output) == (2, True)
    assert verified(str(chain), "--allow-unpinned")[0] == 0
    other = ("--verifier-key", seeded("another").public.raw.hex())
    code, output = verified(str(chain), *other)
    assert (code, "another verifier's" in output) == (1, True)
    assert verified(str(chain), *PINNED, *PINNED)[0] == 0


def test_one_source_is_needed(chain: Path) -> None:
    assert verified(*PINNED)[0] == 2
    assert verified(str(chain), "--prover", "http://provider", *PINNED)[0] == 2
