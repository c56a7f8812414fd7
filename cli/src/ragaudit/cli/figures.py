"""Figures in one look, as bytes that are the same every time on the same library version."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ragaudit.encoding.errors import UnsupportedError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#4d4d4d")
"""Distinguishable without color vision (Okabe and Ito)."""

_STYLE = {
    "figure.figsize": (6.4, 4.2),
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "font.size": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "ragaudit",
    "svg.fonttype": "none",
}


@contextmanager
def axes(title: str, across: str, up: str) -> Iterator[tuple["Figure", "Axes"]]:
    """Yield an empty figure with its axes labelled; drawn without a display.

    Args:
        title: what the figure shows.
        across, up: labels of the axes, with units.

    Raises:
        UnsupportedError: matplotlib is not installed.
    """
    with canvas() as figure:
        place = figure.add_subplot()
        place.set_title(title, fontsize=11)
        place.set_xlabel(across)
        place.set_ylabel(up)
        yield figure, place


@contextmanager
def panels(
    title: str, across: str, up: str, names: Sequence[str]
) -> Iterator[tuple["Figure", list["Axes"]]]:
    """Yield an empty figure with a panel for each name, side by side on common axes.

    Args:
        title, across, up: as of :func:`axes`.
        names: titles of the panels.

    Raises:
        UnsupportedError: matplotlib is not installed.
    """
    with canvas() as figure:
        figure.set_size_inches(3.3 * len(names), 4.6)
        figure.suptitle(title, fontsize=11)
        places = list(figure.subplots(1, len(names), sharex=True, sharey=True))
        for place, name in zip(places, names, strict=True):
            place.set_title(name, fontsize=10)
            place.set_xlabel(across)
        places[0].set_ylabel(up)
        yield figure, places


@contextmanager
def canvas() -> Iterator["Figure"]:
    """Yield an empty figure in our one look.

    Raises:
        UnsupportedError: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - an extra, and slow to load
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "figures need matplotlib", expected="install ragaudit-cli with its extra `plots`"
        ) from error
    style: dict[Any, Any] = {**_STYLE}
    with rc_context(style):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def check_installed() -> None:
    """Check that figures can be drawn: a missing library is told before the work, not after.

    Raises:
        UnsupportedError: matplotlib is not installed.
    """
    with canvas():
        pass


def render(figure: "Figure", name: str) -> dict[str, bytes]:
    """Return the figure's files, ``name.png`` and ``name.svg``, without date or tool version.

    To be called inside :func:`canvas` or what is made of it, whose style it uses.

    Args:
        figure: of :func:`canvas`, :func:`axes` or :func:`panels`.
        name: of the files, without a suffix.
    """
    files = {}
    # Date and tool version would change the bytes of the same figure.
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        out = io.BytesIO()
        figure.savefig(out, format=kind, metadata=metadata)
        files[f"{name}.{kind}"] = out.getvalue()
    return files
