"""How the log is written: lines of JSON for machines, or text for people.

A style returns the bytes of a line, or None to omit it. A provider's own sentence appears only in the text, masked;
lines of JSON contain nothing from a conversation.
"""

from __future__ import annotations

from msgspec import Struct

from thoughtline.gateway.admin.trail import AdminLine
from thoughtline.gateway.journal import Line, LogStyle, encode_line
from thoughtline.gateway.masking import masked_words
from thoughtline.terminal import BOLD, YELLOW, LogOptions, LogRow, counted, painted, row_text

_WATCHED = ("POST", "PUT", "PATCH", "DELETE")
"""Methods that change something on the admin side. The dashboard reads there all the time."""

MAX_SENTENCE = 300
_NO_PROBLEM = frozenset({"goodbye", "settings reloaded", "worker serves"})


def style_of(options: LogOptions) -> LogStyle | None:
    """Return the style of the log; None for all of it as JSON."""
    if options.format == "text":
        return TextLog(options)
    return QuietJsonLog() if options.level == "quiet" else None


def has_failed(line: Line) -> bool:
    """Whether a request failed, or the store needs attention."""
    return line.status >= 400 or not line.status or bool(line.code or line.verdict) or line.store == "degraded"


class QuietJsonLog:
    """Logs only failures."""

    is_for_people = False

    def request(self, line: Line, refusal: str) -> bytes | None:
        return encode_line(line) if has_failed(line) else None

    def begun(self, line: Line) -> bytes | None:
        return None

    def event(self, event: str, detail: str) -> bytes | None:
        return None if event in _NO_PROBLEM else encode_line({"event": event, "detail": detail})

    def note(self, line: Struct) -> bytes | None:
        return encode_line(line)


class TextLog:
    """Logs a line per request, and one more at the start of a stream."""

    is_for_people = True

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._is_quiet = options.level == "quiet"
        self._is_verbose = options.level == "verbose"

    def begun(self, line: Line) -> bytes | None:
        if self._is_quiet or not line.is_streaming:
            return None
        words = ", ".join(["streaming", *done_words(line)])
        return self._row(line, words, has_begun=True)

    def request(self, line: Line, refusal: str) -> bytes | None:
        if self._is_quiet and not has_failed(line):
            return None
        words = ", ".join([*done_words(line), *trouble_words(line)])
        sentence = masked_words(refusal, MAX_SENTENCE)
        if line.verdict:
            sentence = line.verdict if line.code or not sentence else f"{line.verdict} It says: {sentence}"
        text = f"{words}: {sentence}" if words and sentence else words or sentence
        if self._is_verbose:
            text = "  ".join(part for part in (text, f"[{_details(line)}]") if part)
        return self._row(line, text)

    def event(self, event: str, detail: str) -> bytes | None:
        is_problem = event not in _NO_PROBLEM
        if self._is_quiet and not is_problem:
            return None
        words = f"{event}: {detail}" if detail else event
        return painted(words, YELLOW if is_problem else BOLD, self._options).encode()

    def note(self, line: Struct) -> bytes | None:
        """Format a line of the admin side: refusals and changes, or all of it in verbose mode."""
        if not isinstance(line, AdminLine):
            return encode_line(line)
        is_worth_it = line.status >= 400 or (line.method in _WATCHED and not self._is_quiet)
        if not (is_worth_it or self._is_verbose):
            return None
        did = f": {line.done}" if line.done else f": {line.code}" if line.code else ""
        words = f"{line.method} {line.path} by {line.who}{did}"
        return row_text(
            LogRow(line.at, line.status, 0.0, subject="admin", format="", words=words), self._options
        ).encode()

    def _row(self, line: Line, words: str, *, has_begun: bool = False) -> bytes:
        row = LogRow(
            at=line.at,
            status=line.status,
            seconds=(line.upstream_ms + line.own_ms) / 1000,
            subject=_subject(line),
            format=line.format,
            words=words,
            id=line.request,
            has_failed=bool(line.code) or line.store == "degraded",
            has_begun=has_begun,
        )
        return row_text(row, self._options).encode()


def _subject(line: Line) -> str:
    """Return the target and its route, or else the requested address."""
    if line.model:
        target = f"{line.provider}/{line.model}"
        return f"{line.via} → {target}" if line.via else target
    return f"{line.method} {line.route} {line.provider}".rstrip()


def done_words(line: Line) -> list[str]:
    """Return what was done about reasoning."""
    words = [
        (line.restored, f"restored {counted(line.restored, 'turn')}"),
        (line.inherited, f"inherited for {counted(line.inherited, 'turn')}"),
        (line.blank, f"left {counted(line.blank, 'turn')} blank"),
        (line.stripped, f"stripped {counted(line.stripped, 'turn')}"),
        (line.missing, f"nothing found for {counted(line.missing, 'turn')}"),
        (line.checkpoints, f"quoted {counted(line.checkpoints, 'checkpoint')}"),
        (bool(line.handoff), f"taken over from {line.handoff}"),
        (line.attempts > 1, f"asked {counted(line.attempts, 'target')}"),
        (line.healed, "healed once"),
        (line.mode == "off", "replay off"),
        (line.mode == "observe", f"observed, would be {line.would.replace('=', ' ')}" if line.would else "observed"),
    ]
    return [text for is_so, text in words if is_so]


def trouble_words(line: Line) -> list[str]:
    """Return what went wrong."""
    words = [
        (line.code and not line.verdict, line.code.replace("_", " ")),
        (line.note, line.note),
        (line.store != "ok", f"store {line.store}"),
    ]
    return [text for is_so, text in words if is_so]


def _details(line: Line) -> str:
    parts = [
        f"own {line.own_ms:.1f} ms",
        f"up {line.bytes_up:,} B",
        f"down {line.bytes_down:,} B",
        f"remembered {line.captured}",
        f"session {line.session}" if line.session else "",
        *(f"{rule} at {place}" for rule, place in line.findings),
    ]
    return ", ".join(part for part in parts if part)
