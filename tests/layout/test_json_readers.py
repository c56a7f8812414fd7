"""JSON of strangers is read where its structure is looked at first (docs/spec 1.4)."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What each of them reads, nobody else wrote, or its caller has bounded it.
OF_OUR_OWN = {
    "cli/up/run.py": "the state that this command wrote",
    "cli/up/shadow.py": "questions and answers of the operator's own application",
    "encoding/canonical_json.py": "behind check_structure, in lists where an element is long",
    "encoding/json_structure.py": "behind check_structure",
    "ledger/messages/columns.py": "a text whose length the caller has bounded, behind check_depth",
    "prover/command/ingest.py": "lines of the operator's documents",
    "prover/surfaces/prover_port.py": "attributes of documents, which the operator gave",
    "prover/backends/pgvector.py": "a column of the operator's database",
    "serving/generators.py": "the operator's files",
    "verifier/command/arbiter.py": "a file that the caller names",
    "verifier/service/remote.py": "the note that this command wrote",
    "verifier/terms.py": "the operator's terms",
}


def readers() -> Iterator[str]:
    """Modules, but for the laboratory's, that call the library's reader of JSON."""
    for path in ROOT.glob("*/src/ragaudit/**/*.py"):
        name = str(path.relative_to(next(p for p in path.parents if p.name == "ragaudit")))
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Attribute(value=ast.Name("json"), attr="loads" | "load" | "JSONDecoder"):
                    if not name.startswith("lab/"):
                        yield name


def test_nobody_else_reads_json() -> None:
    assert set(readers()) == set(OF_OUR_OWN)
