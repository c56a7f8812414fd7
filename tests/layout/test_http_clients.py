"""Programs of ours ask servers by `ragaudit.http` alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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
