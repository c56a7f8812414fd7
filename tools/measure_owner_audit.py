"""Measure `ragaudit owner audit --sample all` against a prover of its own process, on loopback.

Run `python tools/measure_owner_audit.py 100000` for as many documents of 256 entries; it prints the
seconds that passed, and those of a processor that owner and prover took: a busy machine lets more
pass. Building the window takes longer than the audit and is not counted.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIMENSION, TENANT, WINDOW = 256, "one", "w1"
READY = "ready.json"


def serve(folder: Path, rows: int) -> None:
    """Build a window over so many documents, write how it is asked, and serve it until the end."""
    sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/vectors")]
    from exact_windows import start  # noqa: PLC0415 - of the tests
    from generation_channel import served  # noqa: PLC0415
    from ragaudit.lab.scenario.embedder import HashEmbedder  # noqa: PLC0415
    from ragaudit.prover.backends.interface import Document  # noqa: PLC0415
    from scenario import scenarios  # noqa: PLC0415

    embedder = HashEmbedder(DIMENSION)
    documents = [Document(f"document-{n}", f"text of document {n} " * 20) for n in range(rows)]
    with (folder / "export.jsonl").open("w", encoding="utf-8") as file:
        for each in documents:
            [vector] = embedder.embed([each.content]).tolist()
            line = {"id": each.id, "text": each.content, "vector": vector}
            file.write(json.dumps(line) + "\n")
    with scenarios(folder) as make:
        scenario = make(embedder=lambda _: embedder)
        start(scenario, documents, owners={})
        scenario.service.driver.checkpoint(WINDOW)
        key = scenario.service.owners.give_key(TENANT)
        (folder / "policy.json").write_bytes(scenario.service.windows.get(WINDOW).policy)
        with served(scenario.api.app) as url:  # type: ignore[arg-type]
            ready = {"url": url.removesuffix("/v1"), "key": key}
            (folder / "writing").write_text(json.dumps(ready), encoding="utf-8")
            (folder / "writing").rename(folder / READY)
            signal.sigwait({signal.SIGTERM})


def audit(folder: Path) -> float:
    """Return the seconds that the command takes, its start and the reading of the export too."""
    ready = json.loads((folder / READY).read_text(encoding="utf-8"))
    begun = time.perf_counter()
    subprocess.run(  # noqa: S603 - a command of ours
        [
            Path(sys.executable).parent / "ragaudit", "owner", "audit", "--sample", "all",
            "--documents", folder / "export.jsonl", "--prover", ready["url"],
            "--window-name", WINDOW, "--policy", folder / "policy.json",
        ],
        env={**os.environ, "RAGAUDIT_OWNER_API_KEY": ready["key"]}, check=True,
    )  # fmt: skip
    return time.perf_counter() - begun


def processor_seconds(process: int) -> float:
    """Return what a process that runs has taken of processors, of Linux."""
    # Behind the name, which may hold spaces: fields 14 and 15 of proc(5).
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def main(rows: int) -> None:
    """Measure once."""
    with tempfile.TemporaryDirectory(prefix="ragaudit-owner-") as name:
        folder = Path(name)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        child = os.fork()
        if child == 0:
            serve(folder, rows)
            os._exit(0)
        try:
            begun = time.perf_counter()
            while not (folder / READY).exists():
                if os.waitpid(child, os.WNOHANG) != (0, 0):
                    raise SystemExit("the prover ended")
                time.sleep(0.2)
            built = time.perf_counter() - begun
            before = processor_seconds(child)
            seconds = audit(folder)
            spent = resource.getrusage(resource.RUSAGE_CHILDREN)
            print(
                f"{rows} documents: built in {built:.0f} s, audited in {seconds:.1f} s; "
                f"processor: owner {spent.ru_utime + spent.ru_stime:.1f} s, "
                f"prover {processor_seconds(child) - before:.1f} s"
            )
        finally:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
