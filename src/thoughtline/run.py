"""`python -m thoughtline.run app.py`: a program whose HTTP clients remember. The code is in `library.run`."""

from __future__ import annotations

import sys

from thoughtline.library.run import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
