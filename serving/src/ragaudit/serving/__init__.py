"""What both services share.

`server` runs an `application`, `bodies` are read and sent, `problems` answer errors, `peers` says
who asks, `clock` gives times, `settings` reads the YAML file. `observed` tells operators of
requests: metrics, `log_lines`, `audit_stream`, `spans` of each `exchange`. `jobs` are long work,
`revisions` change databases, `rounds` come from a randomness beacon, `generators` are language
models, which a prover asks for votes and a verifier for its own.
"""
