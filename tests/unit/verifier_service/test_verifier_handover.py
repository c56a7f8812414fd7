"""Entries at once, the handover, the close."""

from pathlib import Path
from typing import Any

import pytest
from databases import ON_EACH_ENGINE_SLOWLY
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import leaf_data
from ragaudit.encoding.tagged import enc
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.log.cosigner_protocol import parse_cosignatures
from ragaudit.ledger.log.notes import ED25519, SigningKey, parse_note
from ragaudit.verifier.service import handover, providers, windows
from ragaudit.verifier.settings import Limits
from verifier_service_harness import (
    END,
    ORIGIN,
    SAMPLING,
    WINDOW,
    Entry,
    Story,
    VerifierScenario,
    problem_of,
)

pytestmark = ON_EACH_ENGINE_SLOWLY


@pytest.fixture
def ended(story: Any) -> Any:
    story.cosign()
    story.scenario.clock.at(END)
    return story


def item(story: Any, name: Any) -> Any:
    with story.scenario.service.database.read() as connection:
        return windows.read_item(connection, ORIGIN, name)


def give(story: Any, documents: Any) -> Any:
    return story.send("POST", "entries", {"entries": documents})


def test_entries_are_given_once(story: Any) -> None:
    documents = story.documents()
    assert give(story, documents[:2]).status_code == 204
    assert give(story, documents).status_code == 204
    assert story.scenario.client.get(f"/v1/windows/{WINDOW}").json()["counts"]["entries"] == 4
    changed = {**documents[1], "body": "00"}
    assert problem_of(give(story, [changed]), 409, "conflict")["where"] == "entry 1"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "record"}, {"kind": "other"}, {"index": -1}, {"index": True}, {"index": 2**53},
        {"salt": "11"}, {"salt": "A" * 64}, {"body": "0"}, {"body": None}, {"more": 1},
    ],
)  # fmt: skip
def test_malformed_entries(story: Any, change: Any) -> None:
    first = story.documents()[0]
    problem_of(
        give(story, [{**story.documents()[1]}, {**first, **change}]), 400, "malformed-request"
    )
    assert story.scenario.client.get(f"/v1/windows/{WINDOW}").json()["counts"]["entries"] == 0


def test_entries_have_caps(tmp_path: Path, auditor: Any) -> None:
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running():
        scenario.open_window()
        scenario.service.handover._limits = Limits(entries=2)
        story = Story(scenario)
        assert give(story, story.documents()[:2]).status_code == 204
        problem_of(give(story, story.documents()), 429, "cap-reached")
        assert give(story, story.documents()[:1]).status_code == 204
        problem_of(give(story, story.documents() * 300), 400, "malformed-request")


def test_the_handover_and_what_is_derived(ended: Any) -> None:
    give(ended, ended.documents()[:3])
    assert ended.send("PUT", "records", ended.handover()).status_code == 204
    assert item(ended, "confidential/records.bin") == ended.handover()
    leaves = b"".join(leaf_data(e.salt, e.kind, e.body) for e in ended.entries)
    assert item(ended, "public/leaves.bin") == leaves
    assert canonical_json.loads(item(ended, "public/entries.json")) == ended.documents()
    assert ended.send("PUT", "records", ended.handover()).status_code == 204
    other = b"".join(_frames(ended)[:-1])
    problem_of(ended.send("PUT", "records", other), 409, "conflict")
    problem_of(give(ended, ended.documents()), 409, "conflict")


def test_an_entry_that_comes_while_the_handover_is_read(
    ended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read a page at a time: one that comes behind the page was compared with nothing."""
    monkeypatch.setattr(handover, "_PAGE_ENTRIES", 1)
    derive = handover._derive
    documents = ended.documents()
    assert give(ended, documents[1:2]).status_code == 204

    def interrupted(*arguments: Any) -> Any:
        found = derive(*arguments)
        assert give(ended, documents[:1]).status_code == 204
        return found

    monkeypatch.setattr(handover, "_derive", interrupted)
    problem_of(ended.send("PUT", "records", ended.handover()), 409, "conflict")
    monkeypatch.setattr(handover, "_derive", derive)
    assert ended.send("PUT", "records", ended.handover()).status_code == 204


def test_the_handover_contains_what_was_given(ended: Any) -> None:
    give(ended, ended.documents())
    frames = [each.frame(i) for i, each in enumerate(ended.entries)]
    short = b"".join(frames[:-1])
    document = problem_of(ended.send("PUT", "records", short), 422, "rejected")
    assert document["where"] == f"entry {len(frames) - 1}"
    frames[1] = Entry("registration", b"changed").frame(1)
    document = problem_of(ended.send("PUT", "records", b"".join(frames)), 422, "rejected")
    assert document["where"] == "entry 1"
    assert item(ended, "public/leaves.bin") is None


def _frames(story: Any) -> Any:
    return [each.frame(i) for i, each in enumerate(story.entries)]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda f, e: f[0][:-1],
        lambda f, e: f[0] + b"\x01",
        lambda f, e: f[0] + f[1][:-1],
        lambda f, e: f[1],
        lambda f, e: f[0] + f[0],
        lambda f, e: f[0] + f[2],
        lambda f, e: (2**40).to_bytes(8, "little") + b"x",
        lambda f, e: (3).to_bytes(8, "little") + b"abc",
        lambda f, e: e[0].frame(0, kind="other"),
        lambda f, e: e[0].frame(0, kind="record"),
        lambda f, e: e[0].frame(0, salt=b"short"),
        lambda f, e: e[0].frame(0, sketch=b"x"),
        lambda f, e: e[0].frame(0, salt_s=b"\0" * 32),
        lambda f, e: e[3].frame(0, sketch=b""),
        lambda f, e: e[3].frame(0, salt_s=b""),
        lambda f, e: e[3].frame(0, salt_s=b"\0" * 31),
    ],
)
def test_malformed_handovers(ended: Any, spoil: Any) -> None:
    body = spoil(_frames(ended), ended.entries)
    problem_of(ended.send("PUT", "records", body), 400, "malformed")
    assert item(ended, "confidential/records.bin") is None


def test_handover_and_close_are_timed(story: Any) -> None:
    final = {"final_checkpoint": story.cosign().decode()}
    story.scenario.clock.now = 1000 * END - 1
    for method, path, body in (("PUT", "records", story.handover()), ("POST", "close", final)):
        answer = story.send(method, path, body)
        problem_of(answer, 425, "too-early")
        assert answer.headers["retry-after"] == "1"
    story.scenario.clock.now = 1000 * SAMPLING
    for method, path, body in (("PUT", "records", story.handover()), ("POST", "close", final)):
        problem_of(story.send(method, path, body), 409, "too-late")


def test_the_handover_has_a_limit(tmp_path: Path, auditor: Any) -> None:
    scenario = VerifierScenario(tmp_path, auditor)
    with scenario.running():
        scenario.open_window()
        scenario.service.handover._limits = Limits(records_bytes=1024)
        story = Story(scenario)
        story.cosign()
        scenario.clock.at(END)
        problem_of(story.send("PUT", "records", story.handover()), 413, "too-large")


def frame(index: int, kind: str, body: bytes, sketch: bytes | None = None) -> bytes:
    salt_s = None if sketch is None else b"s" * 32
    data = enc("ragaudit/v1/handover", index, kind, b"s" * 32, body, salt_s, sketch)
    return len(data).to_bytes(8, "little") + data


def test_a_handover_is_bounded_by_the_cosigned_log(ended: Any) -> None:
    """Eight entries were cosigned: a ninth, and a body that eight cannot fill, are refused."""
    size = ended.scenario.log.tree.size
    more = ended.handover() + frame(size, "registration", b"x")
    answer = problem_of(ended.send("PUT", "records", more), 422, "rejected")
    assert answer["expected"] == f"at most {size}"
    flood = b"".join(frame(i, "registration", b"x" * 3000) for i in range(2000))
    problem_of(ended.send("PUT", "records", flood), 413, "too-large")
    assert item(ended, "confidential/records.bin") is None


def test_entries_are_no_larger_than_entries_are(ended: Any) -> None:
    opening, *others = _frames(ended)
    for index, kind, sketch in ((1, "registration", None), (1, "record", b"x" * 5000)):
        body = opening + frame(index, kind, b"x" * (0 if sketch else 5000), sketch)
        answer = problem_of(ended.send("PUT", "records", body), 400, "malformed")
        assert (answer["where"], answer["expected"]) == ("handover entry 1", "1..4096")
    assert ended.send("PUT", "records", b"".join([opening, *others])).status_code == 204


def test_nothing_is_handed_over_before_anything_was_cosigned(story: Any) -> None:
    story.scenario.clock.at(END)
    problem_of(story.send("PUT", "records", story.handover()), 422, "rejected")


def test_a_stranger_hands_nothing_over(ended: Any) -> None:
    """Before a byte of the body is read: the limit is that of the provider's own window."""
    other = seeded("stranger")
    providers.add(ended.scenario.service.database, "stranger", other.public)
    target = f"/v1/windows/{WINDOW}/records"
    body = ended.handover()
    headers = ended.scenario.headers("PUT", target, body, key=other, provider="stranger")
    answer = ended.scenario.client.put(target, content=body, headers=headers)
    problem_of(answer, 404, "not-found")


def close(story: Any, note: bytes) -> Any:
    return story.send("POST", "close", {"final_checkpoint": note.decode()})


def test_the_close(story: Any) -> None:
    final = story.cosign()
    story.scenario.clock.at(END)
    assert close(story, final).status_code == 204
    assert close(story, final).status_code == 204
    assert item(story, "public/final-checkpoint.txt") == final
    assert story.scenario.client.get(f"/v1/windows/{WINDOW}").json()["state"] == "closed"


def test_after_the_close_nothing_larger_is_cosigned(story: Any) -> None:
    final = story.cosign()
    story.scenario.clock.at(END)
    close(story, final)
    size = story.scenario.log.tree.size
    assert story.scenario.add_checkpoint(story.scenario.log.add_request(size)).status_code == 200
    story.scenario.log.tree.append(b"late")
    assert story.scenario.add_checkpoint(story.scenario.log.add_request(size)).status_code == 403
    problem_of(close(story, story.scenario.log.checkpoint()), 422, "note-rejected")


def test_the_close_needs_the_largest_cosigned_checkpoint(story: Any) -> None:
    scenario = story.scenario
    smaller = scenario.add_checkpoint(scenario.log.add_request(0, 5))
    early = parse_note(scenario.log.checkpoint(5)).with_signatures(
        parse_cosignatures(smaller.content)
    )
    scenario.add_checkpoint(scenario.log.add_request(5))
    scenario.clock.at(END)
    problem_of(close(story, early.encode()), 422, "rejected")
    problem_of(close(story, scenario.log.checkpoint()), 422, "note-rejected")
    problem_of(close(story, b"nothing"), 400, "malformed-note")
    other = SigningKey(scenario.log.key.name, ED25519, seeded("thief"))
    problem_of(close(story, scenario.log.checkpoint(key=other)), 422, "note-rejected")


def test_a_close_before_anything_was_cosigned(ended: Any) -> None:
    problem_of(close(ended, ended.scenario.log.checkpoint()), 422, "note-rejected")


def test_handover_and_close_in_either_order(story: Any) -> None:
    final = story.cosign()
    story.scenario.clock.at(END)
    assert close(story, final).status_code == 204
    assert story.send("PUT", "records", story.handover()).status_code == 204


def test_nothing_before_the_countersignature(scenario: Any) -> None:
    scenario.register()
    story = Story(scenario)
    scenario.clock.at(END)
    problem_of(give(story, story.documents()), 409, "conflict")
    problem_of(story.send("PUT", "records", story.handover()), 409, "conflict")
    problem_of(close(story, scenario.log.checkpoint()), 409, "conflict")
