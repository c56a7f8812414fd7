"""Jobs: work with a key, done by this process or by an engine that exists, and a table of results.

The table of results is the truth, and the first result of a key stays: an engine may lose a job or
run it twice. `table` keeps jobs and results, `runner` waits for them, `arrays` holds the large
inputs that workers map into memory, and an executor (`in_process` or `queue`) has them computed.
"""
