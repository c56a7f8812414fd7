"""Whether a cluster lets in who has no token: run as a module, with HOST:PORT."""

import sys

from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError

REFUSED = 10

if __name__ == "__main__":
    try:
        GcsClient(address=sys.argv[1])
    except AuthenticationError:
        sys.exit(REFUSED)
