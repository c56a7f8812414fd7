"""Bundles whose download is interrupted: it goes on, to the same bytes, and opens nothing twice."""

import io
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from procedure_cases import use_cached_table
from ragaudit.lab.scenario.policy import COUNTERSIGNED
from ragaudit.lab.scenario.services import Clock
from ragaudit.ledger.messages.bodies import AccessBody
from ragaudit.verifier import keys
from ragaudit.verifier.bundle import read_archive
from ragaudit.verifier.command.cli import app
from ragaudit.verifier.service import evidence
from ragaudit.verifier.service import remote as remote_module
from ragaudit.verifier.service.remote import BundleChanged, Opened, Remote, ServiceAway
from service_audit import decide
from service_window import ServiceWindow
from typer.testing import CliRunner
from verifier_service_harness import VerifierScenario, problem_of

SAID = {"reader": "A. Ito", "reason": "complaint 17"}


class Cutting:
    """Passes connections on to a service, and cuts replies off.

    ``most``: bytes of each reply that pass; ``left``: of all replies together.
    """

    def __init__(self, port: int) -> None:
        self.target = port
        self.most = self.left = 10**9
        self.connections = 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while self.target:
            client, _ = self.listening.accept()
            with client:
                if self.target and self.left:
                    self.connections += 1
                    with socket.create_connection(("127.0.0.1", self.target)) as server:
                        self.carry(client, server)

    def carry(self, client: socket.socket, server: socket.socket) -> None:
        client.settimeout(0.02)
        server.settimeout(0.02)
        passing = min(self.most, self.left)
        while passing:
            for source, target in ((client, server), (server, client)):
                try:
                    data = source.recv(4096)
                except TimeoutError:
                    continue
                if not data:
                    return
                if source is server:
                    data = data[:passing]
                    passing -= len(data)
                    self.left -= len(data)
                target.sendall(data)

    def close(self) -> None:
        self.target = 0
        socket.create_connection(self.listening.getsockname()).close()
        self.thread.join()
        self.listening.close()


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An honest window with its verdict, and an address that cuts connections."""
    use_cached_table()
    folder = tmp_path_factory.mktemp("verifier")
    with VerifierScenario(folder, None, Clock(1000 * (COUNTERSIGNED - 60))).running() as scenario:
        window = ServiceWindow(scenario)
        window.play()
        window.submit()
        window.hand_over()
        window.reach_sampling()
        window.respond()
        decide(scenario, window)
        settings: dict[str, Any] = {"log_config": None, "access_log": False, "lifespan": "off"}
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = uvicorn.Server(uvicorn.Config(scenario.client.app, **settings))
            thread = threading.Thread(target=server.run, args=([listening],))
            thread.start()
            while not server.started:
                time.sleep(0.01)
            cutting = Cutting(listening.getsockname()[1])
            yield scenario, window, cutting
            cutting.close()
            server.should_exit = True
            thread.join()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "_WAIT_SECONDS", 0.001)


def headers(scenario: VerifierScenario) -> dict[str, str]:
    token = keys.read_token(scenario.settings.secrets / keys.TOKEN)
    return {"Authorization": f"Bearer {token}"}


def base(judged: Any) -> str:
    return f"/v1/windows/{judged[1].window}"


def opened(judged: Any) -> Any:
    scenario = judged[0]
    path = f"{base(judged)}/bundle/confidential"
    return scenario.client.post(path, headers=headers(scenario), json=SAID)


def accesses(judged: Any) -> int:
    return int(judged[0].client.get(base(judged)).json()["counts"]["accesses"])


def remote(judged: Any) -> Remote:
    scenario, _, cutting = judged
    return Remote(cutting.url, headers(scenario)["Authorization"].split()[1])


def test_the_rest_of_a_bundle_follows_its_beginning(judged: Any) -> None:
    client, path = judged[0].client, f"{base(judged)}/bundle"
    whole = client.get(path)
    size, tag = len(whole.content), whole.headers["etag"]
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["content-length"] == str(size)
    for start in (1, size // 2, size - 1):
        asked = {"Range": f"bytes={start}-", "If-Range": tag}
        rest = client.get(path, headers=asked)
        assert rest.status_code == 206 and rest.content == whole.content[start:]
        assert rest.headers["content-range"] == f"bytes {start}-{size - 1}/{size}"
        assert rest.headers["etag"] == tag
    beyond = client.get(path, headers={"Range": f"bytes={size}-"})
    assert beyond.status_code == 416 and beyond.headers["content-range"] == f"bytes */{size}"


@pytest.mark.parametrize(
    "asked",
    [
        {"Range": "bytes=5-", "If-Range": '"another"'},
        {"Range": "bytes=-5"},
        {"Range": "bytes=5-9"},
        {"Range": "bytes=5-,9-"},
        {"Range": "items=5-"},
        {"Range": b"bytes=\xb2-"},
    ],
)
def test_what_is_no_rest_of_this_bundle_gets_the_whole(judged: Any, asked: Any) -> None:
    client, path = judged[0].client, f"{base(judged)}/bundle"
    found = client.get(path, headers=asked)
    assert found.status_code == 200 and found.content == client.get(path).content


def test_a_download_goes_on_under_its_access(judged: Any) -> None:
    scenario = judged[0]
    first = opened(judged)
    before = accesses(judged)
    place = first.headers["content-location"]
    assert place == f"{base(judged)}/bundle/confidential/{before - 1}?provider={judged[1].provider}"
    found = scenario.client.get(place, headers={**headers(scenario), "Range": "bytes=100-"})
    assert found.status_code == 206 and found.content == first.content[100:]
    assert accesses(judged) == before


def test_no_download_goes_on_that_nobody_began(judged: Any) -> None:
    scenario = judged[0]
    opened(judged)
    pseudonym = judged[1].logged()[0].pseudonym.hex()
    path = f"{base(judged)}/accounts/{pseudonym}"
    assert scenario.client.post(path, headers=headers(scenario), json=SAID).status_code == 200
    count = accesses(judged)
    get = scenario.client.get
    # An access to one account's part opens no bundle; one that is not there opens nothing.
    for number in (count - 1, count, 2**31 - 1):
        answer = get(f"{base(judged)}/bundle/confidential/{number}", headers=headers(scenario))
        problem_of(answer, 404, "not-found")


def test_a_day_later_the_bundle_is_opened_anew(
    judged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = opened(judged).headers["content-location"]
    monkeypatch.setattr(evidence, "RESUMABLE_MS", 0)
    answer = judged[0].client.get(place, headers=headers(judged[0]))
    problem_of(answer, 404, "not-found")


def test_connections_that_are_cut_are_followed_by_others(judged: Any) -> None:
    expected, cutting = opened(judged).content, judged[2]
    before, file = accesses(judged), io.BytesIO()
    cutting.most, cutting.connections = len(expected) // 4, 0
    with remote(judged) as auditor:
        auditor.bundle(judged[1].window, AccessBody.from_json(SAID), file)
    cutting.most = 10**9
    assert cutting.connections > 4
    assert file.getvalue() == expected and read_archive(file).part == "all"
    assert accesses(judged) == before + 1


def test_a_rest_that_is_of_another_bundle_is_not_taken(judged: Any) -> None:
    opened(judged)
    note = Opened(accesses(judged) - 1, '"' + "0" * 64 + '"', 10**9)
    with remote(judged) as auditor, pytest.raises(BundleChanged, match="status 200"):
        auditor.resume(judged[1].window, note, io.BytesIO(b"beginning"))


def test_the_command_goes_on_where_an_earlier_one_broke_off(judged: Any, tmp_path: Path) -> None:
    scenario, window, cutting = judged
    expected = opened(judged).content
    secret = tmp_path / "token"
    secret.write_text(headers(scenario)["Authorization"].split()[1])
    secret.chmod(0o600)
    output = tmp_path / "all.zip"
    arguments = ["evidence", "open", window.window, "--reader", "A", "--reason", "b"]
    options = ["--url", cutting.url, "--token-file", str(secret), "--output", str(output)]
    before = accesses(judged)
    partial = tmp_path / "all.zip.partial"
    cutting.left = len(expected) // 2
    first = CliRunner().invoke(app, [*arguments, *options])
    cutting.left = 10**9
    assert first.exit_code != 0 and "broke off at byte" in first.output
    assert not output.exists() and stat.S_IMODE(partial.stat().st_mode) == 0o600
    assert expected.startswith(partial.read_bytes()) and partial.stat().st_size > 0
    second = CliRunner().invoke(app, [*arguments, *options])
    assert second.exit_code == 0, second.output
    assert output.read_bytes() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.zip", "token"]
    assert accesses(judged) == before + 1


def test_a_service_that_stays_away_is_said(judged: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"http://127.0.0.1:{gone.getsockname()[1]}"
    with Remote(address, "token") as auditor, pytest.raises(ServiceAway, match="byte 3 of 9"):
        auditor.resume("w", Opened(0, '"' + "0" * 64 + '"', 9), io.BytesIO(b"abc"))
