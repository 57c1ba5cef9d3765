"""Secrets of made-up people, and the texts that they are planted in."""

from __future__ import annotations

import math
import re
from collections import Counter

KEY = "sk-of-somebody-4f9Zq1Lw8Xc2Vb7N"
QUERY_KEY = "AIzaSyD4-qW8eRt5YuI0oPaSdFgHjKlZxCvBnM"
MAIL = "joan.doe+work@corp.example.org"
HOME = "joandoe"
PASSWORD = "hunter2hunter2"
KEYS = (
    "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0",
    "sk-proj-abcDEF123456ghiJKL789",
    "gsk_9aB8cD7eF6gH5iJ4kL3mN2oP1qR0sT",
    "ghp_0123456789abcdefghijABCDEFGHIJ456789",
    "AKIAQWERTYUIOPASDFGH",
    "wJa1rXUtnFEMI/K7MDENG/bPxRf1CYEXAMPLEKEY",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "xoxb-123456789012-abcdefGHIJKL3456",
)
PLANTED = (KEY, QUERY_KEY, MAIL, HOME, PASSWORD, *KEYS)
TEXT = (
    f"Mail me at {MAIL}; my files are in /home/{HOME}/project and C:\\Users\\{HOME}\\x; "
    f"clone https://git:{PASSWORD}@git.example.org/r.git; " + "; ".join(f"a key is {key} here" for key in KEYS)
)
WORD = "Zürichberg"
"""A word of the user, the tool and the model."""

_ARGUMENT = f"/home/{HOME}/{WORD} {KEYS[0]}"
OPENING = f"""How is the weather in {WORD}? {TEXT.replace(chr(92), "/")}
script:
think: {TEXT.replace(chr(92), "/")}
call: weather {{"city": "{_ARGUMENT}"}}
---
think: Now I know {WORD}.
say: It is sunny in {WORD}. {KEYS[1]} and {MAIL}
---
think: Once more, {WORD}.
call: weather {{"city": "{WORD}"}}
---
think: The end.
say: Good bye.
"""

_TOKEN = re.compile(r"[A-Za-z0-9+/=_-]{20,}")


def entropy_of(token: str) -> float:
    """In bits for each character."""
    return -sum(count / len(token) * math.log2(count / len(token)) for count in Counter(token).values())


def random_tokens(text: str) -> set[str]:
    """What in a text looks like a key, by another measure than the product's own."""
    found = set(_TOKEN.findall(text))
    return {one for one in found if re.search("[0-9]", one) and re.search("[A-Za-z]", one) and entropy_of(one) > 3.6}
