"""Vectors that a script makes are what it makes, bit for bit."""

import pytest
from vector_scripts import VECTORS, script

SLOW = ("make_epsilon", "make_noise")


@pytest.mark.parametrize(
    "name",
    [
        "make_custody",
        "make_encoding",
        "make_messages",
        "make_quantise",
        "make_receipts",
        "make_integrity",
        "make_words",
        "make_ties",
        "make_missing",
        "make_accounts",
        "make_documents",
        "make_owners",
        "make_rows",
        "make_chain",
        "make_references",
        "make_generator",
        *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW),
    ],
)
def test_vectors_regenerate(name: str) -> None:
    for file, content in script(name).build().items():
        assert (VECTORS / file).read_bytes() == content
