"""A settings file of an older version, with every key set, means what it meant."""

from __future__ import annotations

from pathlib import Path

from thoughtline.settings import Flags, load_settings

EVERY_KEY = Path(__file__).parent / "every_key.toml"


def test_every_key_still_loads() -> None:
    """None is unknown, and each value arrives."""
    settings = load_settings(EVERY_KEY, {"A_KEY": "a key"}, Flags(), Path("/nowhere"))
    server, store, mine = settings.server, settings.store, settings.providers["my-server"]
    assert (server.host, server.port, server.workers, server.hosts) == ("127.0.0.2", 8643, 2, ("gateway.example",))
    assert (server.require_client_keys, server.insecure, server.open_metrics) == (True, True, True)
    assert (store.ttl_seconds, store.memory_entries, store.max_bytes) == (3 * 86400, 100, 2 * 2**30)
    assert (store.encryption_key, store.previous_encryption_key) == ("a key", "earlier")
    assert (settings.replay.learn, settings.replay.heal, settings.replay.hold_ms) == (False, False, 100)
    assert settings.replay.on_miss == {"deepseek": ("blank",)}
    assert (settings.continuity.enabled, settings.continuity.count, settings.continuity.mode) == (True, 5, "always")
    assert settings.continuity.models["deepseek/deepseek-v4-*"] == "always"
    assert (settings.translation.missing_tools, settings.tags, settings.content) == ("refuse", "lift", "plain")
    assert (mine.base_url, mine.auth, mine.api_keys) == (
        "http://127.0.0.1:9000/v1",
        "x-api-key",
        ("first-key", "second-key"),
    )
    assert (mine.contract, mine.dialect, mine.streams_only) == ("reasoning-content", "reasoning_content", True)
    assert mine.timeouts.total == 1800
    assert settings.routes["smart"].weights == (3, 1)
    assert settings.contracts["kimi"].filler == "-"
    assert settings.default_provider == "my-server"
