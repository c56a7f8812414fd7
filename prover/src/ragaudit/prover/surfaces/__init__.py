"""Interfaces that applications speak already: adapters over one kind of query (docs/surfaces.md).

Each adapter is two functions for every call, from its JSON to a `Query` and from an `Answer` to its
JSON, and the names of its errors; accounts, collections and the prover are behind `Caller`.
"""
