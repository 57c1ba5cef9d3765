"""The table of facts that a process goes by."""

from __future__ import annotations

from msgspec.structs import replace

from thoughtline import providers
from thoughtline.destinations.catalogue import listed
from thoughtline.failover.failures import failure_of
from thoughtline.providers import BUILT_IN, FactTable
from thoughtline.replay.refusals import classify


def test_the_table_is_replaced_as_a_whole() -> None:
    """Everything that asks for facts goes by the new one: names, addresses, failures, refusals; then by the old one."""
    [kimi] = [row for row in BUILT_IN.rows if row.name == "kimi"]
    failures = {**kimi.failures, "tired": "overloaded"}
    changed = replace(kimi, aliases=("moon",), failures=failures, refusals=(), hosts=r"moon\.example$")
    table = FactTable((changed,), BUILT_IN.unlisted, further=BUILT_IN.further, dialects=BUILT_IN.dialects)
    sentence = (
        b'{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message"}}'
    )
    tired = b'{"error":{"type":"tired"}}'

    def seen() -> tuple[object, ...]:
        row, failure = providers.host_at("https://api.moon.example/v1"), failure_of(200, tired)
        return (
            providers.canonical_name("moon"),
            row is not None,
            list(listed()) == ["kimi"],
            failure is not None,
            classify(400, sentence) is None,
        )

    providers.use(table)
    try:
        assert seen() == ("kimi", True, True, True, True)
    finally:
        providers.use(BUILT_IN)
    assert seen() == ("moon", False, False, False, False)
