"""Where the large inputs of jobs are: in memory, or in files that a machine's workers share."""

import os
import shutil
import tempfile
import threading
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

import numpy as np
from ragaudit.encoding.errors import UnavailableError
from ragaudit.serving.jobs.job import Array, digest_of

__all__ = ["ArrayFiles", "MemoryArrays"]


class MemoryArrays:
    """Arrays of this process, for jobs that do not leave it; nothing is copied."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Array]] = {}

    def put(self, window: str, array: Array) -> str:
        digest = digest_of(array)
        self._kept.setdefault(window, {})[digest] = array
        return digest

    def get(self, window: str, digest: str) -> Array:
        return self._kept[window][digest]

    def release(self, window: str) -> None:
        self._kept.pop(window, None)

    def keep(self, windows: Collection[str]) -> None:
        for window in set(self._kept).difference(windows):
            self.release(window)

    def forget(self, window: str) -> None:
        self.release(window)


class ArrayFiles:
    """One file for each array, written once, mapped by whoever reads it.

    A file is named by the digest of what is in it, and compared with its name by every process that
    opens it, so that a worker never computes with other rows than it was told to. What is mapped is
    in memory once for all workers of a machine.

    Args:
        folder: that service and workers share; made for its owner only.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._opened: dict[tuple[str, str], Array] = {}

    def put(self, window: str, array: Array) -> str:
        digest = digest_of(array)
        path = self._path(window, digest)
        if not path.exists():
            try:
                self._write(path, array)
            except OSError as error:
                raise _unavailable(error, path) from None
        return digest

    def get(self, window: str, digest: str) -> Array:
        with self._lock:
            if (window, digest) not in self._opened:
                self._opened[window, digest] = self._open(self._path(window, digest), digest)
            return self._opened[window, digest]

    def release(self, window: str) -> None:
        with self._lock:
            for key in [key for key in self._opened if key[0] == window]:
                del self._opened[key]

    def keep(self, windows: Collection[str]) -> None:
        places = {self._place(window) for window in windows}
        for place in self._folder.glob("*") if self._folder.is_dir() else ():
            if place not in places:
                shutil.rmtree(place, ignore_errors=True)

    def forget(self, window: str) -> None:
        self.release(window)
        shutil.rmtree(self._place(window), ignore_errors=True)

    def _place(self, window: str) -> Path:
        # An origin has slashes: no name of a window may lead out of the folder.
        return self._folder / sha256(window.encode()).hexdigest()[:32]

    def _path(self, window: str, digest: str) -> Path:
        return self._place(window) / f"{digest}.npy"

    def _write(self, path: Path, array: Array) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)  # mode 600
        try:
            with os.fdopen(descriptor, "wb") as file:
                np.save(file, array, allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _open(self, path: Path, digest: str) -> Array:
        try:
            array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError as error:
            raise _unavailable(error, path) from None
        except (ValueError, EOFError):
            raise _altered(path) from None
        if digest_of(array) != digest:
            raise _altered(path)
        return array


def _unavailable(error: OSError, path: Path) -> UnavailableError:
    return UnavailableError(
        f"an array of a job cannot be used: {error.strerror}",
        where=str(path),
        expected="jobs.folder on a disk that the service and all workers share",
    )


def _altered(path: Path) -> UnavailableError:
    return UnavailableError(
        "an array of a job is not what its name says", where=str(path), expected="the file deleted"
    )
