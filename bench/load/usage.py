"""What a process and its children have used: processor time to the nanosecond, and memory. Linux only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    for parent in found:
        found += [child for child in _children(parent) if child not in found]
    return found


def _children(pid: int) -> Iterator[int]:
    for task in (_PROC / str(pid) / "task").glob("*/children"):
        yield from map(int, _read(task).split())


def cpu_seconds(pid: int) -> float:
    """Time on a processor, of all threads of the family."""
    return sum(map(own_cpu_seconds, family(pid)))


def own_cpu_seconds(pid: int) -> float:
    """Of one process alone."""
    files = (_PROC / str(pid) / "task").glob("*/schedstat")
    return sum(int(words[0]) for file in files if (words := _read(file).split())) / 1e9


def resident_bytes(pid: int) -> int:
    lines = (line for one in family(pid) for line in _read(_PROC / str(one) / "status").splitlines())
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # it has ended since
        return ""
