"""Other processes of this machine."""

from __future__ import annotations

import os


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # there, and not ours to ask
    return True
