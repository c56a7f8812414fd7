"""``ragaudit attack scope`` and ``ragaudit attack canaries``."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.commands import failing
from ragaudit.encoding.errors import MalformedError

SCOPE_EXAMPLE = """Examples:

  ragaudit attack scope scope.yaml --plant --page leaks.html --report leaks.json

  ragaudit attack scope scope.yaml --plant --writes --pause 0.05

  ragaudit attack scope scope.yaml --only get-ids --seed 7

With --plant, rows that do not show up at once are waited for: a prover in front of a store takes
them up with its next version.

Exit code: 0 nothing found, 1 a leak, 2 bad input, 3 no answer, 4 a key or the budget is refused,
5 nothing found and not everything judged, or a key does not find its own canaries."""

CANARIES_EXAMPLE = """Example:

  ragaudit attack canaries canaries.jsonl --tenants acme,globex --dimension 384"""


class Page(StrEnum):
    """How a page for people ends."""

    HTML = ".html"
    MARKDOWN = ".md"


def canaries(
    output: Annotated[Path, typer.Argument(help="A new file of JSON lines.")],
    tenants: Annotated[
        str, typer.Option(help="Names of the tenants, separated by commas: acme,globex")
    ],
    dimension: Annotated[
        int | None,
        typer.Option(help="Entries of a vector; none if the system embeds texts: --dimension 384"),
    ] = None,
) -> None:
    """Draw canary documents. Plant those with "planted": true with `scope --plant` or by your own
    ingestion, and none of the others."""
    from ragaudit.lab.attacks.scope.probes import draw_canaries, write_canaries

    with failing():
        names = [name for name in tenants.split(",") if name]
        if not names or len(set(names)) != len(names):
            raise MalformedError(
                "no names, or one twice", where="--tenants", expected="acme,globex"
            )
        write_canaries(output, draw_canaries(names, dimension))


def scope(
    target: Annotated[
        Path | None, typer.Argument(help="A YAML file (docs/leaks.md): scope.yaml")
    ] = None,
    plant: Annotated[
        bool, typer.Option("--plant", help="Plant the canaries before, and remove them after.")
    ] = False,
    writes: Annotated[
        bool,
        typer.Option("--writes", help="Try writes too, on canaries only, which are then restored."),
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="A page for people: leaks.html or leaks.md")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="JSON for CI: leaks.json")] = None,
    signed: Annotated[
        Path | None,
        typer.Option(help="The result as a signed in-toto statement: leaks.dsse.json"),
    ] = None,
    sign_key: Annotated[
        Path | None, typer.Option(help="With --signed: a key file (`ragaudit key`).")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="With --signed: of the audited window that is tested, canonical JSON: its verdict "
            "may refer to the result then (`ragaudit verifier test-results attach`)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of requests: --seed 7")] = 0,
    rounds: Annotated[
        int, typer.Option(min=2, max=1000, help="Rounds of existence and timing tests: --rounds 20")
    ] = 5,
    error: Annotated[
        float,
        typer.Option(help="Probability that any of those tests raises a false alarm: --error 0.01"),
    ] = 0.01,
    only: Annotated[
        list[str] | None, typer.Option(help="Run this probe only (repeatable): --only get-ids")
    ] = None,
    pause: Annotated[
        float, typer.Option(min=0, help="Seconds before each request: --pause 0.1")
    ] = 0.0,
    wait: Annotated[
        float,
        typer.Option(min=0, help="With --plant: seconds for planted rows to show up: --wait 900"),
    ] = 600.0,
    max_requests: Annotated[
        int, typer.Option(min=1, help="Refuse a longer run: --max-requests 20000")
    ] = 20_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON report.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the report's JSON schema, and stop.")
    ] = False,
) -> None:
    """Try to see one tenant's documents with another's key: does this store leak?"""
    from ragaudit.lab.attacks.scope import testing  # loads numpy and every kind of store
    from ragaudit.lab.attacks.scope.judging import SCHEMA
    from ragaudit.lab.attacks.scope.running import Options
    from ragaudit.lab.attacks.signing import policy_bytes, signer_of

    if schema:
        typer.echo(json.dumps(SCHEMA, indent=2))
        return
    with failing(as_json):
        if target is None:
            raise MalformedError("missing", where="TARGET", expected="a YAML file, docs/leaks.md")
        if page is not None and page.suffix not in tuple(Page):
            raise MalformedError(page.name, where="--page", expected="a name in .html or .md")
        if not 0 < error <= 0.5:
            raise MalformedError(str(error), where="--error", expected="above 0, 0.5 at most")
        signing = None
        if signed is not None:
            if sign_key is None or report is None:
                raise MalformedError(
                    "nothing to sign, or to sign with", where="--signed",
                    expected="with --report and --sign-key",
                )  # fmt: skip
            signing = signer_of(sign_key), None if policy is None else policy_bytes(policy)
        options = Options(seed, rounds, error, pause, frozenset(only or ()), writes)
        found = testing.tested(target, options, plant, max_requests, wait)
        document = json.dumps(found.to_json(), indent=2, ensure_ascii=False)
        if report is not None:
            testing.write(report, document + "\n", "--report")
        if signed is not None and signing is not None and report is not None:
            key, about = signing
            subjects = {report.name: (document + "\n").encode()}
            testing.write_signed(signed, found, target, subjects, about, key)
        if page is not None:
            html = page.suffix == Page.HTML
            testing.write(page, found.to_html() if html else found.to_markdown(), "--page")
        typer.echo(document if as_json else testing.summary(found))
    raise typer.Exit(found.exit_code)
