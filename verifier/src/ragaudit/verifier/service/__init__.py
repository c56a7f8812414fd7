"""The verifier service: registers windows, cosigns their logs, draws samples, signs verdicts."""
