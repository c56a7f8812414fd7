"""Reading a Dockerfile and a .dockerignore as the builder does, as far as ours go."""

import fcntl
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {
    "ARG", "COPY", "RUN", "ENV", "USER", "WORKDIR", "VOLUME", "EXPOSE", "HEALTHCHECK", "CMD",
}  # fmt: skip


@dataclass
class Stage:
    """One FROM and what follows it."""

    image: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        return [text for name, text in self.instructions if name == instruction]

    def one(self, instruction: str) -> str:
        (text,) = self.all(instruction)
        return text

    @property
    def environment(self) -> dict[str, str]:
        pairs = (word for text in self.all("ENV") for word in shlex.split(text))
        return dict(pair.split("=", 1) for pair in pairs)

    @property
    def commands(self) -> list[list[str]]:
        """The commands of all RUN instructions, split at ``&&``, without their mounts."""
        found = []
        for text in self.all("RUN"):
            script = re.sub(r"--mount=\S+", "", text)
            found += [shlex.split(command) for command in script.split("&&")]
        return found

    @property
    def mounts(self) -> list[dict[str, str]]:
        words = (word for text in self.all("RUN") for word in re.findall(r"--mount=(\S+)", text))
        return [dict(each.split("=", 1) for each in word.split(",")) for word in words]

    @property
    def command(self) -> list[str]:
        """CMD, which must be in the exec form."""
        return list(json.loads(self.one("CMD")))

    @property
    def health_command(self) -> list[str]:
        return list(json.loads(self.one("HEALTHCHECK").split(" CMD ", 1)[1]))


@dataclass(frozen=True)
class Dockerfile:
    """The defaults of the ARGs before the first stage, and the stages."""

    arguments: dict[str, str]
    stages: list[Stage]

    @property
    def last(self) -> Stage:
        return self.stages[-1]

    def stage(self, name: str) -> Stage:
        (found,) = [each for each in self.stages if each.name == name]
        return found


def read_dockerfile(path: Path) -> Dockerfile:
    """Return the parsed file; ValueError for an instruction that ours do not use."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for line in _logical_lines(path.read_text(encoding="utf-8")):
        name, _, text = line.partition(" ")
        text = " ".join(text.split())
        if name == "FROM":
            image, _, alias = text.partition(" AS ")
            stages.append(Stage(image, alias))
        elif name not in KNOWN:
            raise ValueError(f"{path}: {name}")
        elif not stages:
            key, _, default = text.partition("=")
            arguments[key] = default
        else:
            stages[-1].instructions.append((name, text))
    return Dockerfile(arguments, stages)


def _logical_lines(text: str) -> Iterator[str]:
    kept = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(kept).replace("\\\n", " ").splitlines():
        if line.strip():
            yield line.strip()


class Context:
    """What .dockerignore lets into a build: the last pattern that matches decides."""

    def __init__(self, ignore_file: Path) -> None:
        lines = ignore_file.read_text(encoding="utf-8").splitlines()
        patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        self._rules = [
            (_expression(pattern.removeprefix("!")), pattern.startswith("!"))
            for pattern in patterns
        ]
        self._reopened = [pattern.removeprefix("!") for pattern in patterns if pattern[0] == "!"]

    def lets_in(self, path: str) -> bool:
        """Whether the file at ``path``, relative to the root, with ``/``, is sent."""
        parts = path.split("/")
        prefixes = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        included = True
        for expression, includes in self._rules:
            if any(expression.fullmatch(prefix) for prefix in prefixes):
                included = includes
        return included

    def copy(self, root: Path, target: Path) -> None:
        """Copy the files of ``root`` that are let in to ``target``."""
        for path in self._walk(root, root):
            relative = path.relative_to(root)
            (target / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / relative)

    def _walk(self, root: Path, folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            relative = path.relative_to(root).as_posix()
            if path.is_dir():
                if self.lets_in(relative) or self._may_reopen(relative):
                    yield from self._walk(root, path)
            elif self.lets_in(relative):
                yield path

    def _may_reopen(self, folder: str) -> bool:
        return any(pattern.startswith(folder + "/") for pattern in self._reopened)


def _expression(pattern: str) -> re.Pattern[str]:
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    words = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(pieces.get(word, re.escape(word)) for word in words))


def network_environment() -> dict[str, str]:
    """What this machine needs to reach the package index."""
    prefixes = (
        "PIP_",
        "UV_INDEX",
        "UV_DEFAULT_INDEX",
        "SSL_",
        "REQUESTS_",
        "CARGO_HTTP",
        "CARGO_NET",
    )
    names = {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(prefixes) or name.upper() in names
    }


@contextmanager
def building(*folders: Path | str) -> Iterator[dict[str, str]]:
    """What building needs beside the network: the toolchain's places, and ``folders`` on PATH.

    The target folder is the repository's: crates that are compiled already are taken from it. One
    build at a time: each writes its wheel of the core to the same file there.
    """
    kept = ("HOME", "CARGO_HOME", "RUSTUP_HOME", "UV_CACHE_DIR")
    target = ROOT / "circuits" / "rust" / "target"
    target.mkdir(exist_ok=True)
    with (target / ".building").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield {
            **network_environment(),
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": os.pathsep.join([*map(str, folders), "/usr/bin", "/bin"]),
            "CARGO_TARGET_DIR": str(target),
        }


def chapter_commands(chapter: Path) -> set[tuple[str, ...]]:
    """The commands of ours in a chapter's blocks: group and sub-command, or a group alone."""
    blocks = re.findall(r"^(?:```.*?\n(.*?)^```|((?:    .*\n)+))", chapter.read_text(), re.S | re.M)
    text = "\n".join(fenced or indented for fenced, indented in blocks)
    found = set(re.findall(r"\bragaudit ([a-z]+)(?: ([a-z-]+))?(?=[ \n])", text))
    single = {"plan", "demo"}
    return {(group,) if group in single or not rest else (group, rest) for group, rest in found}
