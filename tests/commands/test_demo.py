"""The demonstration shows what it says."""

from __future__ import annotations

import io

from rich.console import Console

from thoughtline.commands import demo


async def test_directly_the_session_breaks_and_through_the_gateway_it_goes_on() -> None:
    """The second request of a client that forgets is refused by the provider, and taken through the gateway."""
    direct, through = await demo.both()
    assert [step.status for step in direct] == [200, 400]
    assert [step.status for step in through] == [200] * demo.TURNS
    assert [step.restored for step in through] == [f"restored={turn}" for turn in range(demo.TURNS)]


async def test_both_are_shown_side_by_side() -> None:
    """The user sees the provider's own error next to the session that continues."""
    output = io.StringIO()
    demo.show(Console(file=output, width=200), *await demo.both())
    assert "must be passed back" in output.getvalue()
    assert f"restored={demo.TURNS - 1}" in output.getvalue()
