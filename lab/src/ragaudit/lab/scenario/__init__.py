"""One small scenario: a policy, a clock, an embedder, documents, accounts, a window.

The attacks, the benchmarks and the tests of all parties share it. `Window` makes the evidence of a
window without any service; `Scenario` plays one through the real prover, verifier and client.
"""
