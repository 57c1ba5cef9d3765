"""An end-to-end test with a real key: the model thinks, the client omits the reasoning, the gateway restores it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from msgspec.structs import replace

from thoughtline.clients import Address, example_models, key_variables
from thoughtline.commands.demo import play
from thoughtline.commands.doctor import Check
from thoughtline.commands.loopback import gateway_for, listening
from thoughtline.destinations.catalogue import Provider
from thoughtline.settings import Settings
from thoughtline.terminal import counted

REQUESTS = 2
TOKENS = 1000
"""About what both requests use together, with a model that thinks briefly."""


class LiveKey:
    """A key for a provider: from the settings, or from an environment variable. It is never shown."""

    def __init__(self, provider: Provider, environment: Mapping[str, str]) -> None:
        names = key_variables(Address(f"/{provider.name}", ""))[1:]
        found = next((name for name in names if environment.get(name, "").strip()), "")
        self.value = "" if provider.api_keys else environment.get(found, "").strip()
        self.is_there = bool(provider.api_keys or self.value or not provider.needs_callers_key)
        self.names = " or ".join(names)
        self.place = "the settings" if provider.api_keys else f"${found}" if found else "no key"


async def look_live(settings: Settings, name: str, model: str | None = None) -> Check:
    """Send a provider two requests through a gateway of our own, and check whether its reasoning was restored."""
    provider, about = settings.providers[name], f"live {name}"
    key, model = LiveKey(provider, os.environ), model or example_models().get(name, "")
    if not model:
        return Check(about, "skipped", f"no model of {name} is known here", "name one: --model MODEL")
    if not key.is_there:
        return Check(about, "skipped", f"there is no key for {name}", f"set {key.names}")
    cost = f"{counted(REQUESTS, 'short request')} to {name} for {model}, about {TOKENS:,} tokens, with {key.place}"
    sys.stderr.write(f"thoughtline doctor: --live sends {cost}\n")
    alone = replace(settings, default_provider=name, routes={})
    async with listening(gateway_for(alone)) as url:
        steps = await play(f"{url}/{name}", REQUESTS, model=model, key=key.value or "any")
    last = steps[-1]
    if last.status != 200:
        return Check(about, "fail", f"request {len(steps)} of {REQUESTS} failed: {last.verdict or last.got}")
    if last.restored != "restored=1":
        message = f"nothing was put back: {model} gave no reasoning, or {name} does not want it back"
        return Check(about, "warn", message, "name a model that thinks: --model MODEL")
    return Check(about, "ok", f"{model} thought, the client left it out, the gateway put it back ({last.restored})")
