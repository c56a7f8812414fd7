"""Rules of the house: imports, errors, clients, names, decisions, tables of members."""

import ast
import importlib
import importlib.util
import inspect
import re
import sys
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from ragaudit.encoding.errors import RagauditError

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"


@pytest.fixture(scope="module")
def import_map() -> ModuleType:
    spec = importlib.util.spec_from_file_location("import_map", ROOT / "tools" / "import_map.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_that_of_the_imports(import_map: ModuleType) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert import_map.page(text) == text, "run python tools/import_map.py"


def test_implied_arrows_are_left_out(import_map: ModuleType) -> None:
    arrows = {"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset(), "d": frozenset()}
    assert import_map.reduced(arrows)["a"] == frozenset("b")
    assert import_map.picture(arrows) == "flowchart TD\n    a --> b\n    b --> c\n    d\n"


def test_every_module_that_is_named_exists() -> None:
    named = re.findall(r"`ragaudit\.([\w.]+)`", PAGE.read_text(encoding="utf-8"))
    assert named
    for name in named:
        assert importlib.util.find_spec(f"ragaudit.{name}") is not None, name


def test_every_chapter_and_folder_that_is_named_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (PAGE.parent / target).exists(), target


def test_it_stays_two_screens() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 120


MODULES = (
    "ragaudit.encoding.errors",
    "ragaudit.ledger.errors",
    "ragaudit.serving.generators",
    "ragaudit.prover.errors",
    "ragaudit.verifier.service.errors",
    "ragaudit.client.errors",
)
ROOTS = (
    "RagauditError", "MalformedError", "RejectedError", "UnsupportedError", "RefusedError",
    "UnavailableError", "InternalError",
)  # fmt: skip


def tree_of(module: ModuleType, classes: Collection[str]) -> list[str]:
    """Names of classes in the drawing, each time that they stand there."""
    lines = (module.__doc__ or "").splitlines()
    drawn = [line for line in lines if re.match(r"\s*(RagauditError|[├│└])", line)]
    words = re.findall(r"\b[A-Z]\w+", "\n".join(drawn))
    # Words with a second capital are names of classes, existing or not; the others may be prose.
    return [word for word in words if word in classes or re.search(r"[a-z][A-Z]", word)]


def classes_of(module: ModuleType) -> dict[str, type[RagauditError]]:
    return {
        name: kind
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, RagauditError) and kind.__module__ == module.__name__
    }


@pytest.mark.parametrize("name", MODULES)
def test_the_drawn_tree_is_complete(name: str) -> None:
    module = importlib.import_module(name)
    classes = classes_of(module)
    drawn = tree_of(module, classes)
    assert set(classes) <= set(drawn)
    bases = {base.__name__ for kind in classes.values() for base in kind.__mro__}
    assert set(drawn) - set(classes) <= bases
    assert all(drawn.count(kind) == 1 for kind in classes)


@pytest.mark.parametrize("name", MODULES)
def test_only_roots_are_called_errors(name: str) -> None:
    classes = classes_of(importlib.import_module(name))
    # A ValueError besides, and called as those are.
    named = {kind for kind in classes if kind.endswith("Error")} - {"InvalidArgumentError"}
    assert named <= set(ROOTS)


PRODUCT = (
    "encoding", "circuits", "ledger", "privacy", "embedders", "serving", "prover", "verifier",
    "client", "cli",
)  # fmt: skip
LIBRARIES = ("urllib.request", "http.client", "requests", "urllib3", "aiohttp", "httpcore")
# What opens connections; types and errors of httpx are anybody's.
OPENS = {
    "Client", "AsyncClient", "HTTPTransport", "AsyncHTTPTransport", "create_ssl_context", "Proxy",
    "get", "post", "put", "patch", "delete", "head", "options", "request", "stream",
}  # fmt: skip


def opened(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                yield from (each.name for each in names if each.name.startswith(LIBRARIES))
            case ast.ImportFrom(module="httpx"):
                yield "from httpx import"
            case ast.ImportFrom(str(module), names):
                found = [module, *(f"{module}.{each.name}" for each in names)]
                yield from (each for each in found if each.startswith(LIBRARIES))
            case ast.Attribute(ast.Name("httpx"), name) if name in OPENS:
                yield f"httpx.{name}"
            case ast.Name("PyJWKClient") | ast.Attribute(attr="PyJWKClient"):
                yield "PyJWKClient"


def test_no_other_module_opens_an_http_client() -> None:
    home = ROOT / "encoding" / "src" / "ragaudit" / "http" / "__init__.py"
    assert {*opened(home.read_text(encoding="utf-8"))} >= {"httpx.Client", "httpx.AsyncClient"}
    for member in PRODUCT:
        for path in sorted((ROOT / member / "src").rglob("*.py")):
            if path != home:
                assert not [*opened(path.read_text(encoding="utf-8"))], path


def test_each_way_is_found() -> None:
    for line in (
        "import httpx\nhttpx.get('http://x')", "from httpx import Client", "import http.client",
        "from urllib.request import urlopen", "from urllib import request", "import requests",
        "from http import client", "import httpcore", "import jwt\njwt.PyJWKClient('http://x')",
    ):  # fmt: skip
        assert [*opened(line)], line
    assert not [*opened("import httpx\nhttpx.HTTPError\nfrom http import HTTPStatus")]


def _members() -> list[Path]:
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]
    return [ROOT / name for name in workspace["members"]]


def test_no_member_claims_the_namespace() -> None:
    """A stray ``ragaudit/__init__.py`` would hide every other member."""
    for member in _members():
        for source in ("src", "python"):
            assert not (member / source / "ragaudit" / "__init__.py").exists(), member


def test_every_package_is_typed_and_in_the_contracts() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    found = []
    for member in _members():
        source = member / ("python" if member.name == "rust" else "src") / "ragaudit"
        packages = [
            path for path in source.iterdir() if path.is_dir() and path.name != "__pycache__"
        ]
        assert packages and all((each / "py.typed").exists() for each in packages), packages
        found += [f"ragaudit.{each.name}" for each in packages]
    assert sorted(found) == sorted(settings["root_packages"])


def test_the_verifier_depends_on_neither_prover_nor_toolchain() -> None:
    project = tomllib.loads((ROOT / "verifier" / "pyproject.toml").read_text())["project"]
    names = {entry.split("[")[0].split(">")[0].split("=")[0] for entry in project["dependencies"]}
    assert not names & {
        "ragaudit-prover",
        "ragaudit-core",
        "ragaudit-client",
        "ragaudit-lab",
        "maturin",
    }


def test_dependencies_are_pinned_to_ranges() -> None:
    for member in _members():
        project = tomllib.loads((member / "pyproject.toml").read_text())["project"]
        for entry in project.get("dependencies", []):
            if not entry.startswith("ragaudit-"):
                assert ">=" in entry and "<" in entry, (member.name, entry)


FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
STATUS = r"Date: \d{4}-\d\d-\d\d · Status: (accepted|superseded by (\d{4}-[\w-]+\.md))"


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_date_status_and_alternatives(path: Path) -> None:
    title, blank, status, *rest = path.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(rf"# {int(path.name[:4])}\. \S.*", title)
    found = re.fullmatch(STATUS, status)
    assert blank == "" and found is not None, status
    assert found[2] is None or (FOLDER / found[2]).exists()
    assert rest.count("## Alternatives") == 1


def test_the_numbers_run_from_one() -> None:
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))


WITH_TABLES = ("05-records", "06-ledger", "08-services")


@pytest.fixture
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables", ROOT / "tools" / "member_tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_members_are_those_of_the_classes(tables: ModuleType) -> None:
    kept = (tables.SPEC / "members.json").read_text("utf-8")
    assert kept == tables.text(), "run `python tools/member_tables.py`"


def test_every_mention_of_members_is_one_that_is_read(tables: ModuleType) -> None:
    chapters = {path.stem: path.read_text("utf-8") for path in tables.SPEC.glob("*.md")}
    for name, text in chapters.items():
        assert text.count("\nMembers: ") == len(tables.NAMED.findall(text)), name
    found = {name for name, text in chapters.items() if tables.NAMED.search(text)}
    assert found == set(WITH_TABLES)
