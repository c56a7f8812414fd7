"""The machine, the software and the cores that a measurement ran on."""

import contextlib
import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ragaudit.encoding.errors import MalformedError

__all__ = ["available_cores", "limited_to", "machine", "processor_seconds", "software"]

# Instruction sets that the proof core, the matrix product or SHA-256 may use.
_FLAGS = ("avx2", "bmi2", "avx512f", "avx512ifma", "avx512_vnni", "sha_ni", "aes", "amx_int8")
_PACKAGES = ("ragaudit-cli", "ragaudit-core", "numpy", "faiss-cpu")


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


@contextlib.contextmanager
def limited_to(cores: int | None) -> Iterator[int]:
    """Keep every thread of this process on so many cores.

    Libraries that make their threads later make as many as that.

    Args:
        cores: how many; None leaves all as it is.

    Returns:
        A context manager that yields the number of cores and gives them all back.

    Raises:
        MalformedError: fewer cores are available.
    """
    allowed = os.sched_getaffinity(0)
    if cores is None:
        yield len(allowed)
        return
    if cores > len(allowed):
        raise MalformedError(f"{cores} cores", where="--cores", expected=f"at most {len(allowed)}")
    _pin(set(sorted(allowed)[:cores]))
    try:
        yield cores
    finally:
        _pin(allowed)


def _pin(cores: set[int]) -> None:
    """Threads that exist already are moved too; new ones inherit."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread that just ended
            os.sched_setaffinity(int(task.name), cores)


def processor_seconds(process: int) -> float | None:
    """Return user and system time of a process so far, in seconds; None where there is no /proc.

    Args:
        process: its id.
    """
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime


def machine() -> dict[str, Any]:
    """Return processor, its instruction sets of note, cores and memory of this machine."""
    described = _cpuinfo()
    flags = set(described.get("flags", "").split())
    return {
        "architecture": platform.machine(),
        "processor": described.get("model name", "unknown"),
        "family": "/".join(described.get(f, "?") for f in ("cpu family", "model", "stepping")),
        "flags": [flag for flag in _FLAGS if flag in flags],
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


def software() -> dict[str, str]:
    """Return the versions of Python and of what computes."""
    return {"python": platform.python_version(), **{each: _version(each) for each in _PACKAGES}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _cpuinfo() -> dict[str, str]:
    """The first processor of /proc/cpuinfo; nothing where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}
