"""Reads `thoughtline.toml`, the environment and the flags into one `Settings`.

They are read once at the start (and again on SIGHUP) and passed in; nothing else reads the environment.
"""

from __future__ import annotations

import contextlib
import ipaddress
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from msgspec.structs import asdict, replace

from thoughtline.destinations.catalogue import listed
from thoughtline.facts.files import overlays_folder, read_facts
from thoughtline.providers import FactTable, canonical_name, facts, host_at, use
from thoughtline.settings.keys import NAMED_TABLES, TABLES
from thoughtline.settings.kinds import NAMED, TEXT, URL
from thoughtline.settings.overlay import lay, lay_environment, spelled
from thoughtline.settings.structs import (
    ContinuitySettings,
    DashboardSettings,
    DebugSettings,
    FactsSettings,
    Flags,
    ReplaySettings,
    ServerSettings,
    Settings,
    TranslationSettings,
)
from thoughtline.settings.tables import (
    ANY_CLIENT,
    LONGEST_SHOWN,
    given,
    read_contracts,
    read_ladders,
    read_models,
    read_providers,
    read_routes,
    read_table,
    read_value,
    table_at,
)
from thoughtline.stores import DURABLE
from thoughtline.stores.settings import StoreSettings, default_url
from thoughtline.toml.tree import Given, Problems, Table, read_file
from thoughtline.values.errors import InputProblem, SettingsError
from thoughtline.values.nearest import did_you_mean

FILE_NAME = "thoughtline.toml"
FILE_VARIABLE = "THOUGHTLINE_CONFIG"

_FLAGS = {
    "host": ("server", "host"),
    "port": ("server", "port"),
    "workers": ("server", "workers"),
    "store": ("store", "url"),
    "upstream": ("server", "upstream"),
    "provider": ("server", "provider"),
    "observe": ("replay", "mode"),
}
_ALSO = {"continuity": ("models",)}
"""Nested tables that are read separately."""
_UPSTREAM = "upstream"
"""The name of a provider that is given only by its URL."""


def load_settings(file: Path | None, environment: Mapping[str, str], flags: Flags, home: Path) -> Settings:
    """Read everything. Raises `SettingsError` with all problems, not only the first."""
    problems = Problems()
    chosen = file or settings_file(environment, home)
    tree = read_file(chosen, environment, problems) if chosen else Table({}, "settings")
    lay_environment(tree, environment, problems)
    for name, value in asdict(flags).items():
        if value is not None:
            lay(tree, _FLAGS[name], Given(value, f"--{name}"))
    with _facts_of(tree, environment, home, problems) as table:
        settings = replace(_settings(tree, problems, default_url(environment, home)), table=table)
    if problems.found:
        raise SettingsError(sorted(dict.fromkeys(problems.found), key=_in_order))
    return settings


@contextlib.contextmanager
def _facts_of(
    tree: Table, environment: Mapping[str, str], home: Path, problems: Problems
) -> Iterator[FactTable | None]:
    """The table of facts with the overlays from settings and the fetched ones; active while the settings are read.

    A running gateway keeps its own table until it adopts the new settings.
    """
    table = read_facts(_named_files(tree), overlays_folder(data_directory(environment, home)), problems)
    before = facts()
    try:
        use(table or before)
        yield table
    finally:
        use(before)


def _named_files(tree: Table) -> list[tuple[Path, str]]:
    """The files of `[facts]`, each with its position in the settings."""
    node = table_at(tree, "facts", Problems()).members.get("files")
    if node is None or isinstance(node, Table):
        return []
    files = read_value("facts.files", node, NAMED["texts"], Problems())
    return [(Path(str(file)).expanduser(), node.place) for file in cast("tuple[str, ...]", files or ())]


def settings_file(environment: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path | None:
    """The file that is read if no flag names one: the environment's, else the one in the user's own settings folder.

    A file in the working directory often comes from someone else: with `${NAME}` in a URL it could send any secret of
    the environment anywhere.
    """
    if environment.get(FILE_VARIABLE):
        return Path(environment[FILE_VARIABLE])
    return next((place for place in own_files(environment, home, platform) if place.is_file()), None)


def own_files(environment: Mapping[str, str], home: Path, platform: str = sys.platform) -> list[Path]:
    """The possible files for a user's own settings; the first is the place for new ones."""
    xdg = Path(environment.get("XDG_CONFIG_HOME", ""))  # the specification says to ignore a relative one
    folders = [xdg if xdg.is_absolute() else home / ".config"]
    if platform == "darwin":
        folders.append(home / "Library" / "Application Support")
    if platform == "win32":
        folders = [Path(environment.get("APPDATA") or home / "AppData" / "Roaming"), *folders]
    return [folder / "thoughtline" / FILE_NAME for folder in folders if folder.is_absolute()]


def overlooked_file(environment: Mapping[str, str], home: Path) -> Path | None:
    """A file in the working directory that is ignored, because neither a flag nor the environment names one."""
    here, chosen = Path(FILE_NAME), settings_file(environment, home)
    if environment.get(FILE_VARIABLE) or not here.is_file() or (chosen is not None and here.samefile(chosen)):
        return None
    return here


def home_folder() -> Path:
    """The user's home; without one, a path that can't be written to."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")  # as on Debian for users without one


def data_directory(environment: Mapping[str, str], home: Path) -> Path:
    """The folder of the embedded store and its other files."""
    return Path(default_url(environment, home).removeprefix("sqlite:///")).parent


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with access for their owner only: `mkdir` alone does so only for the
    last.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)


def check_exposure(settings: Settings, has_client_keys: bool) -> SettingsError | None:
    """Refuses to start the gateway where anyone who reaches it could use the providers' keys."""
    spent = sorted(name for name, row in settings.providers.items() if row.has_secrets)
    if is_loopback(settings.server.host) or has_client_keys or settings.server.insecure or not spent:
        return None
    message = f"anybody who reaches this address can use the keys of {', '.join(spent)}"
    remedy = "make a client key with `thoughtline keys add NAME`, listen on 127.0.0.1, or set insecure = true"
    return SettingsError([InputProblem("settings", "server.host", message, remedy)])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listening address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _settings(tree: Table, problems: Problems, store_url: str) -> Settings:
    for name, node in tree.members.items():
        if name not in (*TABLES, *NAMED_TABLES):
            problems.unknown(node.place, name, (*TABLES, *NAMED_TABLES), "table")
    default = _default_provider(tree, problems)
    ladders = _ladders_apart(table_at(tree, "replay", problems))
    read = {
        name: read_table(name, table_at(tree, name, problems), keys, problems, _ALSO.get(name, ()))
        for name, keys in TABLES.items()
    }
    providers = read_providers(table_at(tree, "providers", problems), problems)
    known = listed() | providers
    url = given(read["store"], "url", store_url)
    _check_store(url, tree, problems)
    on_miss = read_ladders(ladders, problems)
    models = table_at(table_at(tree, "continuity", problems), "models", problems, "continuity.")
    return Settings(
        server=replace(ServerSettings(), **read["server"]),
        store_url=url,
        store=replace(StoreSettings(), **{name: value for name, value in read["store"].items() if name != "url"}),
        providers=known,
        configured=frozenset(providers),
        default_provider=default,
        routes=read_routes(table_at(tree, "routes", problems), known, problems),
        replay=replace(ReplaySettings(), **read["replay"], on_miss=on_miss),
        continuity=replace(ContinuitySettings(), **read["continuity"], models=read_models(models, known, problems)),
        translation=replace(TranslationSettings(), **read["translation"]),
        tags=given(read["tags"], "mode", Settings().tags),
        content=given(read["content"], "mode", Settings().content),
        debug=replace(DebugSettings(), **read["debug"]),
        dashboard=replace(DashboardSettings(), **read["dashboard"]),
        facts=replace(FactsSettings(), **read["facts"]),
        contracts=read_contracts(table_at(tree, "contracts", problems), problems),
    )


def _ladders_apart(replay: Table) -> Table:
    """`on_miss` as a table of ladders, moved out of its own table: there it is a word."""
    ladders = replay.members.get("on_miss")
    if not isinstance(ladders, Table):
        return Table({}, replay.place)
    del replay.members["on_miss"]
    return ladders


def _name_at(url: str) -> str:
    found = host_at(url)
    return found.name if found is not None else _UPSTREAM


def _default_provider(tree: Table, problems: Problems) -> str | None:
    """The provider for requests that name none: by its URL, or by its name."""
    server = tree.members.get("server")
    members = server.members if isinstance(server, Table) else {}
    quiet = Problems()  # reported when the whole table is read
    url = read_value("", members["upstream"], URL, quiet) if "upstream" in members else None
    name = read_value("", members["provider"], TEXT, quiet) if "provider" in members else None
    if url is None and name is None:
        return None
    chosen = canonical_name(str(name)) if name else _name_at(str(url))
    written = spelled(tree, chosen)
    is_known = chosen in listed() or written in table_at(tree, "providers", Problems()).members
    if url is not None:
        place = members["upstream"].place
        lay(tree, ("providers", written, "base_url"), Given(url, place))
        if not is_known:
            lay(tree, ("providers", written, "formats"), Given(list(ANY_CLIENT), place))
    elif not is_known:
        problems.add(
            members["provider"].place, "server.provider", "there is no such provider", did_you_mean(chosen, listed())
        )
        return None
    return chosen


def _check_store(url: str, tree: Table, problems: Problems) -> None:
    known = ("memory", *DURABLE)
    scheme, colon, _ = url.partition(":")
    if colon and scheme in known:
        return
    place = table_at(tree, "store", Problems()).members.get("url", tree).place
    what = f"{scheme} is no such store" if colon and len(scheme) <= LONGEST_SHOWN else "there is no such store"
    problems.add(place, "store.url", what, f"it begins with one of {', '.join(known)} and a colon; sqlite:///FILE")


def _in_order(problem: InputProblem) -> tuple[bool, str, int]:
    """Problems of the file from its top, then the others."""
    source, _, line = problem.place.rpartition(":")
    return (False, source, int(line)) if line.isdigit() else (True, problem.place, 0)
