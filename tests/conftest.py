"""Make tests/support importable: helpers that several test modules share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
