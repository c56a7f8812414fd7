"""Make tests/support importable, and let no property test depend on the machine's load."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "support"))

settings.register_profile("ragaudit", deadline=None)
settings.load_profile("ragaudit")
