"""What both services share.

`server` runs one, `connections` bounds what a peer may hold, `bodies` and `strict_json` read
requests, `problems` answers errors, `clock` gives times, `settings` reads the YAML file. `observed`
tells operators of requests: `metrics`, `log_lines`, `audit_stream`, `spans` of each `exchange`.
`bounded_http` calls other servers; `generators` are language models, which a prover asks for votes
and a verifier for its own.
"""
