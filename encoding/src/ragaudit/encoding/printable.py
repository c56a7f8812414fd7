"""Text as a person may see it: what others wrote moves no cursor and draws no line of its own.

A terminal obeys what it is sent: a colour, a cleared screen, a line that looks like another
program's. So errors are shown as one line (`ragaudit.encoding.errors`), and a command's whole
output through `printable` (`ragaudit.encoding.commands`, `ragaudit.encoding.console`).
"""

import re

__all__ = ["one_line", "printable"]

# C0 but tab and newline, DEL, C1; what joins, hides or turns round the characters beside it; line
# ends that are none in a file; halves of characters, which no encoding writes; tags.
_STRANGE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_BREAKS = {"\n": r"\n", "\t": r"\t"}


def printable(text: str) -> str:
    r"""Return text whose control and format characters are escapes, as ``\u001b`` for ESC.

    Lines and tabs stay. JSON stays JSON, of the same meaning; text that was made so stays as it is.

    Args:
        text: any.
    """
    return _STRANGE.sub(_escape, text)


def one_line(text: str) -> str:
    r"""Return `printable` text without line breaks and tabs either: ``\n`` and ``\t`` instead.

    Args:
        text: any.
    """
    text = printable(text)
    for character, escape in _BREAKS.items():
        text = text.replace(character, escape)
    return text


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
