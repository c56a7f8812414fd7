"""`python -m ragaudit.cli` is the `ragaudit` command."""

from ragaudit.cli.main import run

if __name__ == "__main__":
    run()
