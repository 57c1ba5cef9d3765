"""Nothing of a request is lost in silence: it arrives, or a finding names its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translation.kinds import KINDS, MARK, OTHERS, PAGE, Kind, fate, page, request, told
from thoughtline.values.turns import FormatName

PAIRS = [(client, to) for client, others in OTHERS.items() for to in others]


@pytest.mark.parametrize(("client", "to"), PAIRS)
@pytest.mark.parametrize("number", range(max(map(len, KINDS.values()))))
def test_each_kind_alone(client: FormatName, to: str, number: int) -> None:
    """No kind is refused, and none is lost."""
    for kind in KINDS[client][number : number + 1]:
        asked = request(client, [kind])
        assert fate(kind, 0, asked, told(client, asked.body, to)) != "lost"


@pytest.mark.parametrize(("client", "to"), PAIRS)
def test_any_of_them_together(client: FormatName, to: str) -> None:
    """In any order: one does not hide another."""
    kinds = [kind for kind in KINDS[client] if not kind.members]

    @given(st.lists(st.sampled_from(kinds), min_size=2, max_size=6, unique_by=lambda kind: kind.name))
    def check(some: list[Kind]) -> None:
        asked = request(client, some)
        got = told(client, asked.body, to)
        fates = {kind.name: fate(kind, number, asked, got) for number, kind in enumerate(some)}
        assert "lost" not in fates.values(), fates

    check()


def test_the_table_of_the_docs() -> None:
    """It says what is done."""
    assert MARK + page() in PAGE.read_text(), "run `python -m tests.translation.kinds`"
