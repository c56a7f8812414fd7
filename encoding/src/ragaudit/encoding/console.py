"""The console of every command: it styles what we say, and never what others wrote."""

from collections.abc import Iterable
from typing import IO, Any

from ragaudit.encoding.commands import Escaping
from ragaudit.encoding.printable import printable
from rich import console as rich_console
from rich.console import ConsoleDimensions, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

__all__ = ["Console"]

_ENDLESS = 1_000_000


class Console(rich_console.Console):
    """As rich's; the text of whatever it shows is `printable` text.

    On what is no terminal, lines are as long as they have to be: nobody cuts off what a program
    reads.
    """

    def __init__(self, *, width: int | None = None, **options: Any) -> None:
        """Make one.

        Args:
            width: in columns; that of the terminal if None, without an end where none is.
            options: as of rich.
        """
        self._given_width = width
        super().__init__(width=width, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return text to be laid out: escaped already, so that it takes the place that it needs."""
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of something, their texts escaped, also of what was no string."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and lines; no end of columns where no terminal is."""
        if self._given_width is None and not self.is_terminal:
            return ConsoleDimensions(_ENDLESS, 25)
        return super().size

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._given_width, self._height = new_size
        self._width = self._given_width

    @property
    def file(self) -> IO[str]:
        """The stream that is written to; the one below, where commands escape everything."""
        stream = super().file
        return stream.plain if isinstance(stream, Escaping) else stream

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream
