"""What the surfaces refuse, where it says more than the families of encoding.errors.

RagauditError
└── RefusedError         NotServed
"""

from ragaudit.encoding.errors import RefusedError


class NotServed(RefusedError):
    """A path, member or right that an application's key does not have here, on purpose."""
