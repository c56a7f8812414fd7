"""Mechanisms that answer in words: votes over documents, and what each document pays.

    retrieval   TOP-K as a part of the mechanism: one document changed, at most one slot changed
    dp_rag      one question by a vote on every token
    dp_ksa      one question by a set of keywords that many voters name
    budgets     what each document may still give, in exact money
    streams     many questions: NAIVE, MURAG, MURAG-ADA
    coins       all randomness, injected; `samplers` makes it from uniform bytes

Every mechanism is a function of a question, rows, voters and coins. docs/spec/11-generation.md is
normative; what the papers say otherwise, and why, stands in docs/notes/generation.md.
"""
