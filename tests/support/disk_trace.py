"""What services write to a folder, in order; and the folder as a loss of power would leave it.

A small library in C, preloaded into a service, notes each write, cut, rename and synchronisation:
of Python and of SQLite alike. From a copy of the folder and this trace the state at every moment
follows: what was synchronised is there; of the rest anything may be.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

_HEADER = struct.Struct("<B3xIIIQ")
_SECTOR = 512
_SOURCE = Path(__file__).with_suffix(".c")
_SHARED_MEMORY = "-shm"  # SQLite's index of its write-ahead log: made anew after a loss of power

CREATED, CUT, WRITTEN, RENAMED, REMOVED = b"ctwru"
SYNCING, SYNCED, SYNCING_FOLDER, SYNCED_FOLDER = b"SsDd"


@dataclass(frozen=True, slots=True)
class Operation:
    """One line of the trace.

    Attributes:
        offset: in the file; of a synchronisation that begins, the time in Unix milliseconds.
        end: where in the trace it ends.
    """

    kind: int
    path: str
    offset: int
    data: bytes = field(repr=False)
    end: int


class DiskTrace:
    """The trace of what processes do to a folder.

    Attributes:
        folder: that is watched.
    """

    def __init__(self, folder: Path, scratch: Path) -> None:
        """Prepare, before any process starts.

        Args:
            folder: without symbolic links.
            scratch: another folder, for library and trace.
        """
        self.folder = folder
        self._library, self._trace = scratch / "disk_trace.so", scratch / "trace"
        self._fault, self._base = scratch / "fault", scratch / "base"
        # The compiler that links the Rust core, too.
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(self._library), str(_SOURCE)]
        subprocess.run([*command, "-lpthread"], check=True)
        self._trace.touch()
        self._fault.touch()

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to be traced."""
        return {
            "LD_PRELOAD": str(self._library),
            "RAGAUDIT_TRACE": str(self._trace),
            "RAGAUDIT_TRACE_FOLDER": str(self.folder),
            "RAGAUDIT_TRACE_FAULT": str(self._fault),
        }

    def begin(self) -> None:
        """Take the folder as it is for durable; nobody writes to it now."""
        shutil.rmtree(self._base, ignore_errors=True)
        shutil.copytree(self.folder, self._base)
        self._trace.write_bytes(b"")

    def fail(self, number: int, prefix: Path) -> None:
        """Let every change of files whose path begins so fail with an errno; 0 for none."""
        written = self._fault.with_suffix(".new")
        written.write_text(f"{number} {prefix}" if number else "")
        written.replace(self._fault)

    @property
    def position(self) -> int:
        """How long the trace is: what happened before has its place below it."""
        return self._trace.stat().st_size

    def operations(self) -> Iterator[Operation]:
        """All that was done, in order."""
        data, at = self._trace.read_bytes(), 0
        while at < len(data):
            kind, _process, path, length, offset = _HEADER.unpack_from(data, at)
            start = at + _HEADER.size + path
            name = data[at + _HEADER.size : start].decode()
            at = start + length
            yield Operation(kind, name, offset, data[start:at], at)

    def disk(self) -> Disk:
        """The folder as `begin` found it."""
        return Disk(self._base, self.folder)


@dataclass(slots=True)
class _File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Operation] = field(default_factory=list)


class Disk:
    """A folder's files, what of them is durable, and which of their names are."""

    def __init__(self, base: Path, folder: Path) -> None:
        self._folder = folder
        files = (path for path in base.rglob("*") if path.is_file())
        self._names = {
            str(folder / path.relative_to(base)): _File(bytearray(path.read_bytes()))
            for path in files
        }
        self._durable_names = dict(self._names)
        self._renames: list[Operation] = []  # of folders, not durable

    def apply(self, operation: Operation) -> None:
        """Do what was done next."""
        path, kind = operation.path, operation.kind
        if kind in {WRITTEN, CUT}:
            self._names.setdefault(path, _File()).pending.append(operation)
        elif kind == SYNCED:
            # What was written while it synchronised is perhaps durable, and not known to be.
            found = self._names.get(path)
            if found is not None:
                found.durable = _content(found, None)
                found.pending.clear()
        elif kind in {CREATED, RENAMED, REMOVED}:
            self._rename(self._names, operation)
            self._renames.append(operation)
        elif kind == SYNCED_FOLDER:
            here = [each for each in self._renames if str(Path(each.path).parent) == path]
            for each in here:
                self._take(self._durable_names, each)
            self._renames = [each for each in self._renames if each not in here]

    def write(self, how: str, into: Path, seed: int = 0, part: str = "") -> None:
        """Make a folder as a loss of power leaves this one; what was in it goes.

        Args:
            how: ``synced``: nothing is left but what was synchronised; ``torn``: of the rest, any
                sectors and any of the first renames; ``kept``: everything, as after SIGKILL.
            into: the folder.
            seed: of what is left, if torn.
            part: of the folder, its files alone.
        """
        chance = Random(seed)
        names = dict(self._names if how == "kept" else self._durable_names)
        if how == "torn":
            for each in self._renames[: chance.randint(0, len(self._renames))]:
                self._take(names, each)
        for path in list((into / part).rglob("*")):
            if path.is_file():
                path.unlink()
        for name, file in names.items():
            if name.endswith(_SHARED_MEMORY) or not name.startswith(f"{self._folder / part}"):
                continue
            path = into / Path(name).relative_to(self._folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            content = file.durable
            if how != "synced":
                content = _content(file, chance if how == "torn" else None)
            path.write_bytes(content)
            path.chmod(0o600)

    def _rename(self, names: dict[str, _File], operation: Operation) -> None:
        if operation.kind == CREATED:
            names[operation.path] = _File()
        elif operation.kind == REMOVED:
            names.pop(operation.path, None)
        else:
            names[operation.data.decode()] = names.pop(operation.path)

    def _take(self, names: dict[str, _File], operation: Operation) -> None:
        """Do in a folder that is older what was done in the one that is."""
        target = operation.path
        if operation.kind == RENAMED:
            names.pop(operation.path, None)
            target = operation.data.decode()
        if operation.kind == REMOVED:
            names.pop(target, None)
        elif target in self._names:
            names[target] = self._names[target]


def _content(file: _File, chance: Random | None) -> bytearray:
    """What a file holds: all that was written, or of what is not durable some sectors."""
    content = bytearray(file.durable)
    for each in file.pending:
        if each.kind == CUT:
            if chance is None or chance.random() < 0.5:
                missing = each.offset - len(content)
                content = content[: each.offset] + bytes(max(0, missing))
            continue
        for at in range(0, len(each.data), _SECTOR):
            if chance is not None and chance.random() < 0.5:
                continue
            start, part = each.offset + at, each.data[at : at + _SECTOR]
            content.extend(bytes(max(0, start - len(content))))
            content[start : start + len(part)] = part
    return content
