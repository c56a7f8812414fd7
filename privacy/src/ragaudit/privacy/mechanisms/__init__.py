"""Mechanisms of generated answers: votes over documents, and what each document pays.

    retrieval   TOP-K as a part of the mechanism: one document changed, at most one slot changed
    dp_rag      one question by a vote on every token
    dp_ksa      one question by a set of keywords that many voters name
    streams     many questions: NAIVE, MURAG, MURAG-ADA; what each document may still give
    samplers    all randomness: injected coins, made from uniform bytes

Every mechanism is a function of a question, rows, voters and coins. docs/spec/11-generation.md is
normative; what the papers say otherwise, and why, stands in docs/notes/generation.md.
"""
