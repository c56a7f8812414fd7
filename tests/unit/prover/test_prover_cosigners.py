"""Further cosigners: asked beside the verifier, each by itself; whatever goes wrong is told."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from further_cosigners import Parties, key, policy_text
from ledger_logs import COSIGNER, COSIGNERS, KEY, fill
from ragaudit.encoding.errors import MalformedSettings
from ragaudit.ledger.errors import RestoredBackup
from ragaudit.ledger.log.checkpoint_store import CheckpointStore
from ragaudit.ledger.log.checkpoints import Checkpoint, sign_checkpoint
from ragaudit.ledger.log.cosignatures import cosign
from ragaudit.ledger.log.cosigner_protocol import AddCheckpointRequest, Answer
from ragaudit.ledger.log.database import open_engine
from ragaudit.ledger.log.notes import parse_note
from ragaudit.ledger.log.store import LogStore
from ragaudit.ledger.log.tlog_policy import TrustPolicy
from ragaudit.ledger.log.tree import MemoryTree
from ragaudit.prover.settings import CosignerSettings, read_trust
from ragaudit.prover.verifier.cosigners import AskedLog, Cosigners

ORIGIN = KEY.name
POLICY = TrustPolicy.parse(policy_text().encode())


class Scene:
    """A log, three cosigners, and the prover's side of them."""

    def __init__(self, folder: Path) -> None:
        self.parties = Parties(folder, lambda: 1_800_000_000_000)
        self.parties.take_up(KEY.verifier_key)
        self.engine = open_engine(f"sqlite:///{folder}/log.db")
        self.store = LogStore.create(self.engine, KEY.verifier_key)
        self.checkpoints = CheckpointStore(self.store, COSIGNERS, POLICY)
        self.log = AskedLog(self.store, self.checkpoints)
        self.client = self.fresh()

    def fresh(self) -> Cosigners:
        """The prover after a restart: it knows no sizes."""
        return Cosigners(POLICY, CosignerSettings(), self.parties.transport)

    def round(self, grow: int = 0) -> set[str]:
        """Sign, have the verifier cosign, ask the others; return who of them cosigned."""
        fill(self.store, grow)
        signed = self.checkpoints.sign(KEY)
        line = cosign(signed.note.text, COSIGNER, 1_800_000_000)
        signed = self.checkpoints.add_cosignatures(signed.head.size, [line])
        self.client.ask(self.log, signed)
        self.client.wait()
        note = self.checkpoints.at(signed.head.size).note
        return {n for n, p in self.parties.of.items() if note.signature_of(p.key.verifier_key)}

    def failures(self) -> dict[str, str]:
        return self.client.failures(ORIGIN)

    def close(self) -> None:
        self.client.close()
        self.parties.close()
        self.engine.dispose()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with closing(Scene(tmp_path)) as made:
        yield made


def test_all_of_them_cosign_and_are_asked_once_a_round(scene: Scene) -> None:
    assert scene.round(5) == scene.round(3) == {"one", "two", "three"}
    post = ("POST", "/prefix/add-checkpoint")
    assert all(party.asked == [post, post] for party in scene.parties.of.values())
    assert scene.failures() == {}
    # Who has cosigned the checkpoint is not asked again.
    assert scene.round() == {"one", "two", "three"}
    assert len(scene.parties.of["one"].asked) == 2


def test_nobody_is_shown_the_lines_of_others(scene: Scene) -> None:
    scene.round(5)
    scene.round(3)
    for party in scene.parties.of.values():
        for body in party.bodies:
            lines = parse_note(AddCheckpointRequest.parse(body).checkpoint).signatures
            assert [line.name for line in lines] == [KEY.name, COSIGNER.name]


def test_after_a_restart_the_size_is_learnt_from_a_conflict(scene: Scene) -> None:
    scene.round(5)
    scene.client.close()
    scene.client = scene.fresh()
    assert scene.round(3) == {"one", "two", "three"}
    assert [len(party.asked) for party in scene.parties.of.values()] == [3, 3, 3]


def test_a_hint_is_only_a_hint(scene: Scene, tmp_path: Path) -> None:
    scene.round(5)
    # A cosigner that began anew has seen nothing: it says so, and is asked from there.
    anew = Parties(tmp_path / "anew", lambda: 1_800_000_000_000)
    anew.take_up(KEY.verifier_key)
    scene.parties.of["one"].store.close()
    scene.parties.of["one"] = anew.of["one"]
    assert scene.round(3) == {"one", "two", "three"}
    assert len(anew.of["one"].asked) == 2
    anew.of["two"].store.close()
    anew.of["three"].store.close()


def raising(error: type[httpx.HTTPError]) -> Any:
    def handle(request: httpx.Request) -> httpx.Response:
        raise error("broken", request=request)  # type: ignore[call-arg]

    return handle


def answering(status: int, body: bytes = b"", **headers: str) -> Any:
    return lambda _request: httpx.Response(status, content=body, headers=headers)


def foreign(name: str, text: str | None = None) -> Any:
    """An answer with a line of another key, or over another text."""

    def handle(request: httpx.Request) -> httpx.Response:
        note = parse_note(AddCheckpointRequest.parse(request.content).checkpoint)
        line = cosign(text or note.text, key(name), 1_800_000_000)
        return httpx.Response(200, content=Answer.cosigned((line,)).body)

    return handle


OTHER_TEXT = Checkpoint(ORIGIN, MemoryTree([b"other"]).head()).text
FAULTS = {
    "slow": (raising(httpx.ReadTimeout), "no answer in time"),
    "gone": (raising(httpx.ConnectError), "cannot be reached: ConnectError"),
    "broken off": (raising(httpx.RemoteProtocolError), "cannot be reached"),
    "unknown log": (answering(404, b"unknown origin\n"), "it answered 404"),
    "untrusting": (answering(403), "it answered 403"),
    "inconsistent": (answering(422), "it answered 422"),
    "ill": (answering(500, b"old 5\n"), "it answered 500"),
    "redirecting": (answering(302, location="https://other/"), "it answered 302"),
    "created": (answering(201, b"\xe2\x80\x94"), "it answered 201"),
    "conflict without a size": (answering(409, b"a fork\n"), "409, "),
    "conflict with a sign": (answering(409, b"+5\n"), "409, "),
    "conflict without an end": (answering(409, b"5"), "409, "),
    "conflicts without end": (answering(409, b"0\n"), "another size again"),
    "no line": (answering(200, b"thanks"), "200, "),
    "nothing": (answering(200), "200, "),
    "long": (answering(200, b"x" * 2**19), "packed or too long"),
    "packed": (answering(200, b"", **{"content-encoding": "gzip"}), "packed or too long"),
    "another's key": (foreign("stranger"), "other keys only"),
    "another party's key": (foreign("two"), "other keys only"),
    "another text": (foreign("one", OTHER_TEXT), "does not verify"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_that_gives_no_cosignature_is_told_and_stops_nobody(scene: Scene, fault: str) -> None:
    scene.parties.of["one"].instead, words = FAULTS[fault]
    assert scene.round(5) == {"two", "three"}
    assert list(scene.failures()) == ["one"] and words in scene.failures()["one"]
    # The quorum of two is reached without it; once it is well again, it is asked again.
    signed = scene.checkpoints.latest(1)
    assert signed is not None
    finding = scene.checkpoints.finding(signed)
    assert finding is not None and finding.reached
    scene.parties.of["one"].instead = None
    assert scene.round(1) == {"one", "two", "three"}
    assert scene.failures() == {}


def test_at_most_two_requests_are_made_of_a_round(scene: Scene) -> None:
    scene.parties.of["one"].instead = answering(409, b"0\n")
    scene.round(5)
    assert len(scene.parties.of["one"].asked) == 2


def test_who_claims_more_entries_and_shows_none_stops_nothing(scene: Scene) -> None:
    for shown in (answering(200, b"nonsense"), answering(404)):

        def claim(request: httpx.Request, shown: Any = shown) -> Any:
            return (
                shown(request) if request.method == "GET" else httpx.Response(409, content=b"9\n")
            )

        scene.parties.of["one"].instead = claim
        assert scene.round(2) == {"two", "three"}
        assert "shows no such checkpoint" in scene.failures()["one"]


def test_who_shows_a_smaller_checkpoint_than_it_claims_stops_nothing(scene: Scene) -> None:
    scene.round(2)
    party = scene.parties.of["one"]
    party.instead = lambda r: (
        party.honest(r) if r.method == "GET" else httpx.Response(409, content=b"99\n")
    )
    assert scene.round(2) == {"two", "three"}
    assert "claims 99 entries, and shows 2" in scene.failures()["one"]


def test_a_larger_checkpoint_that_our_key_signed_stops_the_log(scene: Scene) -> None:
    """The database was restored: the cosigner has what it has lost."""
    larger = MemoryTree(str(i).encode() for i in range(9))
    signed = sign_checkpoint(Checkpoint(ORIGIN, larger.head()), KEY)
    request = AddCheckpointRequest(0, (), signed.encode()).encode()
    scene.parties.of["one"].cosigner.add_checkpoint(request)
    assert scene.round(2) == {"two", "three"}
    assert "with more entries" in scene.failures()["one"]
    with pytest.raises(RestoredBackup, match="one has a checkpoint of ours"):
        scene.round(1)


def test_one_that_hangs_holds_up_nobody(scene: Scene) -> None:
    release, party = threading.Event(), scene.parties.of["one"]

    def hang(request: httpx.Request) -> httpx.Response:
        release.wait(60)
        return party.honest(request)

    party.instead = hang
    fill(scene.store, 4)
    signed = scene.checkpoints.sign(KEY)
    line = cosign(signed.note.text, COSIGNER, 1_800_000_000)
    signed = scene.checkpoints.add_cosignatures(4, [line])
    for _ in range(200):
        scene.client.ask(scene.log, signed)  # returns at once, and does not ask it again
        found = scene.checkpoints.finding(scene.checkpoints.at(4))
        if found is not None and found.reached:
            break
        threading.Event().wait(0.02)
    assert found is not None and sorted(found.cosignatures) == ["three", "two"]
    assert len(party.asked) == 1
    release.set()
    scene.client.wait()
    assert scene.checkpoints.at(4).note.signature_of(party.key.verifier_key) is not None


# --- settings


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("quorum none\n", "nobody to ask"),
        (policy_text().replace("https", "ftp"), "line 1"),
        (f"log {KEY.verifier_key}\n" + policy_text(), "a line of a log"),
        (policy_text("9"), "line 4"),
        ("x" * 2**19, "too long"),
    ],
)
def test_other_policies_are_refused_at_the_start(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "cosigners.policy"
    path.write_text(text)
    with pytest.raises(MalformedSettings, match="policy_file") as caught:
        read_trust(CosignerSettings(policy_file=path))
    assert words in str(caught.value)


def test_a_missing_policy_is_refused_and_none_is_none(tmp_path: Path) -> None:
    with pytest.raises(MalformedSettings, match="cannot read"):
        read_trust(CosignerSettings(policy_file=tmp_path / "none"))
    assert read_trust(CosignerSettings()) is None
    assert Cosigners.of(CosignerSettings()) is None
