"""What a process takes: memory, files it writes (unlinked ones too), its log."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20


@dataclass(frozen=True)
class Taken:
    """What something cost a process, in bytes: the most at a time, and what stayed.

    Attributes:
        memory: by which its largest resident set exceeded the one before.
        disk: by which files exceeded what they had, at their largest; ``kept``: afterwards.
        log: written to it.
    """

    memory: int
    disk: int
    kept: int
    log: int


WATCHED = "from ragaudit.serving import server; server.keep_private = lambda: True"
"""A prelude: a service that its own user may watch, as otherwise nobody may."""


class Footprint:
    """A process that is watched.

    Args:
        pid: of one that was started with `WATCHED`.
        folders: where it may write; a file that it holds open counts wherever it is.
    """

    def __init__(self, pid: int, log: Path, folders: Sequence[Path]) -> None:
        self._proc = Path(f"/proc/{pid}")
        self._log = log
        self._folders = folders

    def memory(self, name: str = "VmRSS") -> int:
        """The resident set (or "VmHWM", the largest so far)."""
        for line in (self._proc / "status").read_text().splitlines():
            if line.startswith(name):
                return 1024 * int(line.split()[1])
        raise AssertionError(name)

    def disk(self) -> int:
        """Bytes in its folders, and in files that it holds and nobody else can see."""
        sizes = {}
        for folder in self._folders:
            for path in folder.rglob("*"):
                with suppress(OSError):
                    found = path.stat()
                    sizes[found.st_dev, found.st_ino] = found.st_size if path.is_file() else 0
        for path in (self._proc / "fd").iterdir():
            with suppress(OSError):
                if "(deleted)" in str(path.readlink()):
                    found = path.stat()
                    sizes[found.st_dev, found.st_ino] = found.st_size
        return sum(sizes.values())

    @contextmanager
    def watching(self) -> Iterator[list[Taken]]:
        """Watch while the block runs; the list holds the result after it."""
        result: list[Taken] = []
        (self._proc / "clear_refs").write_text("5")  # the largest begins anew
        memory, disk, log = self.memory(), self.disk(), self._log.stat().st_size
        most, done = [disk], threading.Event()

        def sample() -> None:
            while not done.wait(0.02):
                most.append(max(most.pop(), self.disk()))

        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            yield result
        finally:
            done.set()
            sampler.join()
        after = self.disk()
        result.append(
            Taken(
                memory=self.memory("VmHWM") - memory,
                disk=max(most[0], after) - disk,
                kept=after - disk,
                log=self._log.stat().st_size - log,
            )
        )
