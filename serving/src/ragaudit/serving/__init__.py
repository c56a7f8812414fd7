"""What both services share.

`server` runs one, `connections` bounds what a peer may hold, `bodies` and `strict_json` read
requests, `problems` answers errors, `clock` gives times, `settings` reads the YAML file. `observed`
tells operators of requests: `metrics`, `log_lines`, `audit_stream`, `spans` of each `exchange`.
`generators` are language models, which a prover asks for votes
and a verifier for its own. Other servers are asked by `ragaudit.http`.
"""
