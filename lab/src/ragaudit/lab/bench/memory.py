"""Peak memory of one measurement: Linux can forget a process's peak, other systems cannot."""

import resource
import sys
from pathlib import Path

__all__ = ["peak_memory_mib", "reset_peak"]

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc_pid_clear_refs(5): "reset the peak resident set size"


def reset_peak(clear: Path = _CLEAR) -> bool:
    """Make the present resident size the peak; return whether the system allowed it.

    Args:
        clear: where Linux is told to; another path in tests.
    """
    try:
        clear.write_text(_RESET_PEAK)
    except OSError:
        return False
    return True


def peak_memory_mib(status: Path = _STATUS) -> float:
    """Return the largest resident size of this process, in MiB, since its start or `reset_peak`.

    Args:
        status: where Linux tells it; where there is no such file, that of `getrusage` is taken,
            which is since the start.
    """
    try:
        lines = status.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024
