"""Settings in the environment: a variable of ours that no setting reads is a mistake."""

import os
from collections.abc import Iterable

from ragaudit.encoding.errors import MalformedError

__all__ = ["check_environment"]


def check_environment(service: str, members: Iterable[str], *, beside: Iterable[str] = ()) -> None:
    """Check that no variable looks like a setting of a service and names none.

    ``RAGAUDIT_PROVER__SERVER__PORT`` overrides ``server.port``; names below the first member are
    checked by the settings themselves.

    Args:
        service: ``PROVER`` or ``VERIFIER``.
        members: names of the outermost settings.
        beside: whole names of variables with another meaning.

    Raises:
        MalformedError: a variable begins with ``RAGAUDIT_<service>_`` and is not a setting.
    """
    prefix = f"RAGAUDIT_{service}"
    settings = {f"{prefix}__{name}".upper() for name in members}
    for name in sorted(os.environ):
        variable = name.upper()
        if not variable.startswith(f"{prefix}_") or variable in beside:
            continue
        member = "__".join(variable.split("__")[:2])
        if member not in settings:
            raise MalformedError(
                "no such setting", where=name, expected=f"{prefix}__SECTION__MEMBER"
            )
