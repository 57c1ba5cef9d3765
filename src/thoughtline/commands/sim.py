"""`thoughtline sim`: a strict provider simulator on loopback."""

from __future__ import annotations

import argparse
import sys

from thoughtline.commands.options import add_log_options, log_options
from thoughtline.values.nearest import did_you_mean
from thoughtline_sim.app import serve
from thoughtline_sim.log import SimLog
from thoughtline_sim.simulators import SIMULATORS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="which provider; --list shows all")
    parser.add_argument("--list", action="store_true", help="list the simulators and their profiles")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8700, help="port to listen on (default: 8700)")
    parser.add_argument("--profile", help="which of the provider's contracts (default: the first one listed)")
    add_log_options(parser)


def run(options: argparse.Namespace) -> int:
    if options.list:
        for each in SIMULATORS.values():
            profiles = f" [{', '.join(each.profiles)}]" if len(each.profiles) > 1 else ""
            sys.stdout.write(f"{each.name:14}{each.about}{profiles}\n")
        return 0
    row = SIMULATORS.get(options.name)
    if row is None or options.profile not in (None, *row.profiles):
        known, word = (row.profiles, options.profile) if row else (SIMULATORS, options.name or "")
        what = f"no {'profile' if row else 'simulator'} {word}" if word else "which provider"
        sys.stderr.write(f"thoughtline sim: {what}; {did_you_mean(word, known)}\n")
        return 2
    serve(
        row.name,
        options.profile,
        options.host,
        port=options.port,
        tell=lambda url: sys.stdout.write(f"{row.name} on {url} (a page to look at)\n"),
        log=SimLog(log_options(options)),
    )
    return 0
