"""Memory that was freed below something that stays goes back to the system when it is told to."""

import ctypes
import subprocess
import sys

import pytest

# In a process of its own: what others have freed would go back, too. Pieces below the size from
# which the C library asks the system for each of them.
PROGRAM = """
from pathlib import Path
from ragaudit.serving.server import bound_heaps, give_back
def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
bound_heaps()
pieces = [b"x" * size for size in range(60_000, 60_500)]
stays = b"x" * 60_000
full = resident()
del pieces
kept = full - resident()
give_back()
print(kept, full - resident())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_what_was_freed_is_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    by_itself, told = (int(number) for number in done.stdout.split())
    assert by_itself < 10_000 < 20_000 < told  # of 29,419 KiB
