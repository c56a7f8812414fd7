"""Jobs: work with a key, done by this process or by an engine that exists, and a table of results.

The table of results is the truth, and the first result of a key stays: an engine may lose a job or
run it twice. `job` says what one is, and keeps inputs and results, `runner` has them done and
waits for them, `queue` is the engine of workers, and `opening` chooses by the settings.
"""
