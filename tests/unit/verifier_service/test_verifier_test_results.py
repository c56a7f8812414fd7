"""A verdict refers to a membership test by digest: attached, shown apart, and no more."""

import hashlib
import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from procedure_cases import use_cached_table
from ragaudit.encoding import canonical_json
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.scenario.policy import COUNTERSIGNED
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages import verdict as verdicts
from ragaudit.ledger.messages.signed_results import MembershipResult, OtherResult, references_of
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.verifier import keys
from ragaudit.verifier.bundle import read_archive, write_bundle
from ragaudit.verifier.command.cli import app
from ragaudit.verifier.engines import engine
from ragaudit.verifier.recheck import Recheck, recheck
from ragaudit.verifier.service import remote
from ragaudit.verifier.service.remote import Remote
from service_audit import decide
from service_integrity_window import ServiceIntegrityWindow
from service_window import ServiceWindow
from typer.testing import CliRunner
from verifier_service_harness import VerifierScenario

TESTER = PrivateKey.from_seed(b"t" * 32)
Decided = tuple[VerifierScenario, ServiceIntegrityWindow, Verdict, bytes]


def result(window: ServiceWindow, key: PrivateKey = TESTER, policy: bytes | None = None) -> bytes:
    item = window.policy.canonical if policy is None else policy
    subjects = {"exchanges.jsonl": b"stored", names.POLICY: item}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in subjects.items()}
    return MembershipResult(digests, "ab" * 32, "FAIL", None, {"auc": "0.9"}).issue(key)


def attach(
    window: ServiceWindow, envelope: bytes, name: str = "membership", token: str | None = None
) -> Any:
    scenario = window.scenario
    held = keys.read_token(scenario.settings.secrets / keys.TOKEN)
    return scenario.client.put(
        f"/v1/windows/{window.window}/test-results/{name}",
        headers={"Authorization": f"Bearer {token or held}"},
        json={"key": TESTER.public.raw.hex(), "result": json.loads(envelope)},
    )


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Decided]:
    """A window whose verdict refers to one result, and the result."""
    use_cached_table()
    folder = tmp_path_factory.mktemp("verifier")
    with VerifierScenario(folder, None, Clock(1000 * (COUNTERSIGNED - 60))).running() as scenario:
        window = ServiceIntegrityWindow(scenario)
        window.play()
        envelope = result(window)
        refused(window, envelope)
        for _ in range(2):
            answer = attach(window, envelope)
            assert answer.status_code == 200, answer.text
            assert answer.json()["digest"] == hashlib.sha256(envelope).hexdigest()
        window.finish()
        verdict = decide(scenario, window)
        assert "the audit has begun" in attach(window, envelope, "later").text
        yield scenario, window, verdict, envelope


def refused(window: ServiceWindow, envelope: bytes) -> None:
    """Whatever is not a signed result about this window."""
    cases = {
        "signed by another key": result(window, PrivateKey.from_seed(b"o" * 32)),
        "of another window, or of none": result(window, policy=b"{}"),
        "not a DSSE envelope": b'{"payload":""}',
    }
    for text, other in cases.items():
        answer = attach(window, other)
        assert answer.status_code in {400, 422} and text in answer.text, answer.text
    changed = json.loads(envelope)
    changed["signatures"][0]["sig"] = json.loads(cases["signed by another key"])["signatures"][0][
        "sig"
    ]
    assert "does not verify" in attach(window, json.dumps(changed).encode()).text
    assert attach(window, envelope, token="none").status_code == 401
    assert attach(window, envelope, name="Not-A-Name").status_code in {400, 404, 422}


def test_the_verdict_refers_to_it_and_says_nothing_of_it(decided: Decided) -> None:
    scenario, window, verdict, envelope = decided
    (one,) = references_of(verdict.predicate.test_results)
    assert one.digest == hashlib.sha256(envelope).digest()
    assert (one.name, one.key) == ("membership", TESTER.public)
    # The test failed; the audit has another subject, and does not.
    assert verdict.result == "PASS"
    predicate = verdict.predicate.to_json()
    listed = predicate.pop("test_results")
    assert one.digest.hex() not in json.dumps(predicate)
    assert (
        listed
        == scenario.client.get(
            f"/v1/windows/{window.window}/test-results",
            headers={
                "Authorization": f"Bearer {keys.read_token(scenario.settings.secrets / keys.TOKEN)}"
            },
        ).json()
    )
    for name in ("report.html", "report.txt"):
        text = scenario.client.get(f"/v1/windows/{window.window}/{name}").text
        assert "no part of epsilon_audit" in text.lower()
        assert one.digest.hex() in text and TESTER.public.raw.hex() in text


def again(decided: Decided, tmp_path: Path, *files: bytes) -> Recheck:
    scenario, window, _, _ = decided
    path = tmp_path / "bundle.zip"
    path.write_bytes(scenario.client.get(f"/v1/windows/{window.window}/bundle").content)
    return recheck(path, engine=engine("core"), pins=window.pins, test_results=files)


def test_a_recheck_looks_at_the_file_that_is_given(decided: Decided, tmp_path: Path) -> None:
    window, envelope = decided[1], decided[3]
    without, with_it = again(decided, tmp_path), again(decided, tmp_path, envelope)
    for found in (without, with_it):
        found.raise_for_differences()
        assert not any("test result" in text for text in found.not_repeated)
    assert any("membership: not looked at" in note for note in without.notes)
    assert any("the file is the one" in note for note in with_it.notes)
    other = result(window, PrivateKey.from_seed(b"o" * 32))
    with pytest.raises(OtherResult, match="not a test result that the verdict refers to"):
        again(decided, tmp_path, other)


@pytest.mark.parametrize("lie", ["left out", "another key", "of another window"])
def test_a_verdict_that_lies_about_it_does_not_stand(
    decided: Decided, tmp_path: Path, lie: str
) -> None:
    """Signed by the verifier's own key: what it could say, and the files refute."""
    scenario, window, verdict, envelope = decided
    base = f"/v1/windows/{window.window}"
    evidence = read_archive(io.BytesIO(scenario.client.get(f"{base}/bundle").content)).evidence
    predicate = verdict.predicate.to_json()
    items = {name: evidence[name] for name in evidence}
    (listed,) = predicate["test_results"]
    if lie == "left out":
        del predicate["test_results"]
    else:
        if lie == "of another window":
            envelope = result(window, policy=b"{}")
        changed = {
            "digest": hashlib.sha256(envelope).hexdigest(),
            "key": ("cd" * 32 if lie == "another key" else listed["key"]),
        }
        predicate["test_results"] = [{**listed, **changed}]
        items[names.TEST_RESULTS] = canonical_json.dumps(predicate["test_results"])
    forged = type(evidence).of(items)
    subjects = {**verdict.subjects, **forged.digests()}
    signed = verdicts.sign_statement(verdicts.statement(subjects, predicate), window.verdict_key)
    path = tmp_path / "forged.zip"
    write_bundle(path, forged, signed, part="public")
    files = [] if lie == "left out" else [envelope]
    found = recheck(path, engine=engine("core"), pins=window.pins, test_results=files)
    expected = {
        "left out": "refers to others than the evidence lists",
        "another key": "signed by another key",
        "of another window": "of another window, or of none",
    }
    assert any(expected[lie] in text for text in found.differences), found.differences


def test_a_verdict_without_results_is_what_it_was(decided: Decided) -> None:
    predicate = decided[2].predicate.to_json()
    del predicate["test_results"]
    read = verdicts.Predicate.from_json(predicate)
    assert read.test_results is None and read.to_json() == predicate
    with pytest.raises(verdicts.MalformedVerdict):
        verdicts.Predicate.from_json({**predicate, "test_results": []})


def test_nothing_is_attached_before_the_countersignature(tmp_path: Path) -> None:
    with VerifierScenario(tmp_path, None, Clock(1000 * (COUNTERSIGNED - 60))).running() as scenario:
        window = ServiceWindow(scenario)
        window.prepare()
        early = attach(window, result(window))
        assert early.status_code == 409 and "countersigned" in early.text


def test_the_commands(decided: Decided, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scenario, window, _, envelope = decided

    def handle(request: httpx.Request) -> httpx.Response:
        answer = scenario.client.request(
            request.method,
            request.url.raw_path.decode(),
            headers=dict(request.headers),
            content=request.read(),
        )
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    monkeypatch.setattr(remote, "Remote", partial(Remote, transport=httpx.MockTransport(handle)))
    secret, file = tmp_path / "token", tmp_path / "result.json"
    secret.write_text(keys.read_token(scenario.settings.secrets / keys.TOKEN))
    secret.chmod(0o600)
    file.write_bytes(envelope)
    options = ["--url", "http://verifier.example", "--token-file", str(secret)]

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, ["test-results", *words, *options])

    shown = run("list", window.window, "--json")
    assert [one["name"] for one in json.loads(shown.output)] == ["membership"]
    key = ["--key", TESTER.public.raw.hex()]
    late = run("attach", window.window, "late", str(file), *key)
    assert late.exit_code == 4 and "the audit has begun" in late.output
    file.write_bytes(b"{}")
    assert run("attach", window.window, "late", str(file), *key).exit_code == 2
