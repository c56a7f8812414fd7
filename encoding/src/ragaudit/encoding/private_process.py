"""A process that holds keys: no core dump shows them, and no process of its user reads them."""

import ctypes
import sys

__all__ = ["keep_private"]

_PR_SET_DUMPABLE = 4  # linux/prctl.h


def keep_private() -> bool:
    """Have this process write no core dump, and refuse those who attach to it or read its memory.

    To be called before a key is read. Root, and who has CAP_SYS_PTRACE, reads it all the same.

    Returns:
        Whether attachment is refused now; False where the system knows no such thing.
    """
    if sys.platform == "win32":
        return False
    import resource  # noqa: PLC0415 - Windows has none

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A dump that is piped to a program is not bound by the limit; by this it is.
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    return prctl is not None and prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
