"""The stages of a request on its way up, and of its answer on its way down. Each is there only where it applies.

up     what a request becomes for one target: restored in its own format, or translated; and on which terms
down   in one format, without tags, an answer is only read beside being passed on
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from thoughtline.continuity.tagged_events import TaggedEvents, shown_items
from thoughtline.continuity.terms import HEADER, tag_mode_for
from thoughtline.engine.capture import MAX_BYTES, StreamWatch, Watch, log_problem
from thoughtline.engine.replayer import Recalls
from thoughtline.engine.request import NOTHING_CARRIED, Carried, MemberEdits, Prepared, as_signed, with_finding
from thoughtline.formats import FORMATS
from thoughtline.formats.weighing import check_weight, is_light
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.choosing import terms_of
from thoughtline.gateway.estimating import counted_request, estimate_tokens
from thoughtline.gateway.http_client import UpstreamResponse
from thoughtline.gateway.observing import as_it_came, original_of, pass_on, send_observed, translate_only
from thoughtline.gateway.pieces import MAX_WHOLE_BYTES, Decompress, EditStream, EditWhole, Piece, Stage, too_large
from thoughtline.gateway.plain_content import PlainContent
from thoughtline.gateway.plain_content import plain as without_lists
from thoughtline.gateway.renaming import RenamedCalls
from thoughtline.gateway.stored_responses import held_state, unfolded
from thoughtline.gateway.tagging import tags_in_body, tags_in_stream
from thoughtline.gateway.translating import Translate, way_back
from thoughtline.providers import Dialect
from thoughtline.replay.findings import Finding
from thoughtline.replay.remembering import Cut
from thoughtline.translation import Sealing, StreamTranslator, TranslatedRequest, translate_request
from thoughtline.translation.compactions import CompactedEvents, compaction_of, may_compact, read_compactions
from thoughtline.translation.own_format import Adapted, adapt
from thoughtline.translation.passages import Direction, Written
from thoughtline.translation.replies import EditsEvents
from thoughtline.translation.tools import NO_NAMES
from thoughtline.values.errors import DecodeError, ThoughtlineError
from thoughtline.values.options import ALL_TOOLS, FUNCTIONS_ONLY
from thoughtline.values.turns import Transcript

# --- the way up -------------------------------------------------------------------------------------------------------


async def prepare(attempt: Attempt) -> None:
    """What to send to a target. Raises where the request can't be carried into the provider's format.

    held state, continuity, stored responses, then translated or restored, and tags: each only where it applies.
    """
    client, target, incoming = FORMATS[attempt.client.format], attempt.target, attempt.incoming
    if attempt.replay == "off" and not attempt.is_translated:
        await pass_on(attempt)
        return
    if attempt.is_generating:
        if client.held is not None and f'"{client.held.member}"'.encode() in incoming.short:
            held = held_state(incoming.short, client.held, target.provider, is_translated=attempt.is_translated)
            attempt.found = (*attempt.found, *held)
        header = incoming.headers.get(HEADER)
        if attempt.replay == "on" and (header or target.terms is not None):
            attempt.terms = terms_of(target, attempt.state.settings, header) if header else target.terms
    is_stored = attempt.is_translated and "stored_responses" in client.quirks
    if is_stored:
        await _with_stored(attempt)
    if client.tool_shapes == "namespaces":
        new = attempt.body if attempt.is_translated else incoming.short  # what is remembered has none to change
        if incoming.route.action == "compact" or may_compact(new):
            await _compacted(attempt)
    if not attempt.is_translated:
        await _restored(attempt)
    else:
        await (_translated(attempt) if attempt.is_generating else _estimated(attempt))
    ratios = attempt.state.caches.ratios
    if ratios.targets and attempt.is_generating and attempt.prepared is not None and ratios.wants(target.health_name):
        body = attempt.prepared.body
        attempt.guess = await attempt.state.replayer.work_for(body)(partial(estimate_tokens, body))
    is_continued = attempt.terms is not None
    if attempt.replay == "on" and attempt.prepared is not None and (is_continued or target.tags is not None):
        attempt.tags = tag_mode_for(target.tags, is_continued, attempt.prepared.contract.dialect)


async def _with_stored(attempt: Attempt) -> None:
    """A translated request of Responses has its whole conversation in `input`."""
    body, state = attempt.body, attempt.state
    work = state.replayer.work_for(body)
    await work(partial(check_weight, body))
    attempt.body = attempt.conversation = await unfolded(state.store, attempt.incoming.caller.tenant, body, work)


async def _compacted(attempt: Attempt) -> None:
    """Without compactions that the server can't read; one that it can't make is asked for in words."""
    tools = attempt.state.replayer.contract_for(attempt.destination).tools
    takes = FUNCTIONS_ONLY if attempt.is_translated else tools
    if attempt.state.settings.translation.missing_tools == "pass_on" and not attempt.is_translated:
        takes = ALL_TOOLS
    is_ordered = attempt.incoming.route.action == "compact" and not takes.takes("compaction")
    work = attempt.state.replayer.work_for(attempt.body)
    read = await work(partial(read_compactions, attempt.body, attempt.sealer, takes, is_ordered=is_ordered))
    if is_ordered:
        attempt.retained = read.users
    attempt.body = read.body
    if read.is_ordered:
        attempt.compacts = attempt.is_generating = True
    if read.findings:
        attempt.found = (*attempt.found, *read.findings)


async def _estimated(attempt: Attempt) -> None:
    """Tokens that nobody counts in this format: of what would be sent; where that can't be made, of what came."""
    attempt.body = counted_request(attempt.body, FORMATS[attempt.client.format])
    try:
        await _translated(attempt)
    except ThoughtlineError:
        attempt.prepared = None
    attempt.uncounted = attempt.prepared.body if attempt.prepared is not None else attempt.body


async def _translated(attempt: Attempt) -> None:
    """In the provider's format, and restored there."""
    replayer, client, destination = attempt.state.replayer, attempt.client, attempt.destination
    identity, contract = attempt.incoming.identity, replayer.contract_for(destination)
    work, own = replayer.work_for(attempt.body), FORMATS[client.format]
    if own.in_lists is not None:
        attempt.body = await work(partial(own.in_lists, attempt.body))
    translation = attempt.state.settings.translation
    asks_to_think = translation.think and attempt.replay == "on"
    rules = (translation.missing_tools, translation.cache_marks, asks_to_think)
    direction = Direction(identity.tenant, own.name, destination.format, contract, model=destination.model, rules=rules)

    def translate(transcript: Transcript) -> TranslatedRequest:
        return translate_request(
            transcript,
            destination.format,
            contract,
            model=destination.model,
            identity=identity,
            sealer=attempt.sealer,
            is_streaming=client.is_streaming or transcript.is_streaming or attempt.target.streams_only,
            missing_tools=translation.missing_tools,
            marks_prompts=translation.cache_marks,
            asks_to_think=asks_to_think,
        )

    request = await replayer.translated(attempt.body, direction, translate)
    streams = client.is_streaming or request.is_streaming
    carried = Carried((), (*attempt.found, *request.findings), request.call_ids, opened=request.records)
    recall = _recall(attempt) if attempt.terms is not None else None
    final = request.written
    if attempt.target.provider.is_located and attempt.member_edits:
        final = Written.of(_with_members(final.read(), attempt.member_edits, contract.dialect))
    if attempt.replay == "on":
        prepared = await replayer.prepare_translated(
            final, destination, identity, contract=contract, carried=carried, recall=recall
        )
        attempt.send_instead(prepared)
        if prepared.counts.restored and attempt.asks_template:
            await attempt.state.templates.learn(attempt)  # for the requests that follow
    else:
        await translate_only(attempt, final.read(), contract, carried)
    attempt.client = replace(
        client,
        is_streaming=streams,
        wants_usage=request.short.options.wants_usage,
        call_ids=request.call_ids,
        tools=request.short.tools,
    )
    attempt.is_streaming, attempt.is_rewritten = streams, True


def _with_members(transcript: Transcript, edits: MemberEdits, dialect: Dialect) -> Transcript:
    """A request that we wrote, with these members in its body."""
    if not edits:
        return transcript
    for name, value in edits:
        transcript = transcript.with_member(name, value)
    bodies = FORMATS[transcript.format].bodies
    written = bodies.decode_request(bodies.encode_request(transcript, dialect), dialect)
    return replace(written, model=transcript.model, is_streaming=transcript.is_streaming)


def _recall(attempt: Attempt) -> Recalls:
    """How to fetch what other models thought, which is to be quoted."""
    assert attempt.terms is not None
    return partial(attempt.state.memory.recall, target=attempt.destination, terms=attempt.terms)


async def _restored(attempt: Attempt) -> None:
    """In its own format."""
    incoming, state = attempt.incoming, attempt.state
    streams_only, destination = attempt.target.streams_only, attempt.destination
    original = original_of(attempt)
    cuts: Sequence[Cut] | None = incoming.cuts
    adapted = Adapted(attempt.body)
    if not attempt.is_signed and attempt.replay == "on" and FORMATS[attempt.client.format].tool_shapes != "functions":
        cuts, adapted = _adapted(attempt)
    findings = (*attempt.found, *adapted.findings)
    if adapted.names is not NO_NAMES:
        attempt.names = adapted.names
        attempt.client = replace(attempt.client, tools=adapted.names)
    prepare_anew = partial(
        state.replayer.prepare,
        adapted.body,
        destination,
        incoming.identity,
        model=original.model,
        edits=original.edits,
        recall=_recall(attempt) if attempt.terms is not None else None,
        carried=Carried(findings=findings) if findings else NOTHING_CARRIED,
        cuts=cuts,
    )
    prepared = await prepare_anew()
    if prepared.counts.restored and attempt.asks_template and await state.templates.learn(attempt):
        prepared = await prepare_anew()
    if attempt.replay == "observe" and not attempt.is_signed:
        send_observed(attempt, prepared, await as_it_came(state.replayer, original, incoming.model))
    else:
        attempt.send_instead(_as_signed(attempt, prepared) if attempt.is_signed else prepared)
    if prepared.transcript is not None:
        attempt.is_streaming = attempt.is_streaming or prepared.transcript.is_streaming
        if attempt.compacts:
            attempt.client = replace(attempt.client, is_streaming=attempt.is_streaming)
        if attempt.compacts or (streams_only and not attempt.is_streaming):
            attempt.is_rewritten = True


def _as_signed(attempt: Attempt, prepared: Prepared) -> Prepared:
    """As its client signed it; a signature for another host or path than it goes to is one that AWS refuses."""
    url, incoming = urlsplit(attempt.url), attempt.incoming
    came = incoming.headers.get(b"host", b"").decode("latin-1"), incoming.scope["raw_path"].decode("latin-1")
    prepared = as_signed(prepared, incoming.body)
    if came == (url.netloc, url.path):
        return prepared
    why = "signed for another address than it goes to, which AWS refuses"
    return with_finding(prepared, Finding("signed-elsewhere", url.netloc, why, 'set auth = "aws", and sign it here'))


def _adapted(attempt: Attempt) -> tuple[Sequence[Cut] | None, Adapted]:
    """The body as the server takes it. If it takes what is new of a conversation as it came, then all of it."""
    incoming, state, destination = attempt.incoming, attempt.state, attempt.destination
    cuts = incoming.cuts if attempt.body is incoming.body else ()
    cut = state.replayer.cut_for(cuts, destination, incoming.identity) if cuts else None
    contract, missing = state.replayer.contract_for(destination), state.settings.translation.missing_tools
    change = partial(adapt, format=attempt.client.format, contract=contract, missing=missing)
    if cut is not None and change(cut.short) == Adapted(cut.short):
        return [cut], Adapted(attempt.body)
    return None, change(attempt.body)


# --- the way down -----------------------------------------------------------------------------------------------------

LONG_BYTES = 64 * 2**10
"""An event that is longer is read where it holds nobody up: images, and answers that are repeated at their end."""


BRIEF_BYTES = 8 * 2**10
"""What is compressed and no longer than this is unpacked and read at once."""


class Down(Struct, gc=False):
    """The stages of one answer, its watch, and what the pump has to know of them. Without any the answer goes on as it
    comes.

    `starts_at_once`: its head need not wait for its first bytes. `is_sized`: its length is known at its end.
    `is_resized`: it is a stream that gets longer or shorter on its way.
    """

    stages: tuple[Stage, ...] = ()
    reader: ReadStream | ReadWhole | None = None
    watch: Watch | None = None
    translation: Translate | None = None
    starts_at_once: bool = True
    is_sized: bool = False
    is_resized: bool = False
    unread: str = ""


def down(attempt: Attempt, response: UpstreamResponse, prepared: Prepared, *, is_stream: bool, now: float) -> Down:
    """decompress, read, translate, plain content, tags, rename: those that apply, in this order.

    What is packed in a way that we can't undo goes on unread.
    """
    is_rewritten, encoding = attempt.is_rewritten, response.encoding
    edit = None
    if attempt.tags != "off":  # in a stream words come first, their seal behind them
        edit = partial(shown_items, mode=attempt.tags, shows_seals=not is_stream and not attempt.is_translated)
    watch = StreamWatch(prepared, edit) if is_stream else Watch(prepared, edit)
    before: tuple[Stage, ...] = ()
    if encoding:
        try:
            before = (Decompress(encoding),)
        except DecodeError as problem:
            if is_rewritten:
                raise
            return Down(watch=watch, unread=problem.problem)
    reader: ReadStream | ReadWhole
    if isinstance(watch, StreamWatch):
        most = BRIEF_BYTES if encoding else LONG_BYTES
        reader = ReadStream(watch, is_rewritten, brief_bytes=most, most=most)
    else:
        reader = ReadWhole(watch, is_rewritten, brief_bytes=BRIEF_BYTES if encoding else MAX_BYTES)
    translation = _translation(attempt, watch, now) if is_rewritten else None
    streams_down = attempt.client.is_streaming if is_rewritten else is_stream
    # The client's bytes may be changed, unless they are compressed.
    is_edited = attempt.is_plain or attempt.tags != "off" or attempt.names.client or attempt.retained is not None
    edits = _edits(attempt, is_stream=streams_down) if is_edited and (is_rewritten or not encoding) else ()
    if translation is None and not edits:
        return Down((*before, reader), reader, watch, starts_at_once=is_stream or not response.tells_length)
    return Down(
        (*before, reader, *((translation,) if translation is not None else ()), *edits),
        reader,
        watch,
        translation,
        starts_at_once=is_stream and streams_down,
        is_sized=not streams_down,
        is_resized=streams_down,
    )


def _translation(attempt: Attempt, watch: Watch, now: float) -> Translate | None:
    if attempt.prepared is None or watch.provenance is None:
        return None
    context = way_back(attempt.prepared, attempt.client, attempt.sealer, watch.provenance, now)
    edits: EditsEvents | None = None
    if attempt.compacts:
        edits = CompactedEvents(Sealing(attempt.sealer, watch.provenance, created_at=now))
    elif attempt.tags != "off":
        edits = TaggedEvents(attempt.tags, context.dialect.reasoning_format)
    client = attempt.client
    keeps_answer = "stored_responses" in FORMATS[client.format].quirks and context.source != context.to
    translator = StreamTranslator(context, edits, keeps_answer=keeps_answer) if client.is_streaming else None
    return Translate(context, client, edits, keeps_answer, translator)


def _edits(attempt: Attempt, *, is_stream: bool) -> tuple[Stage, ...]:
    """In an answer that is written anew tags are gone already."""
    stages: list[Stage] = []
    if attempt.is_plain:
        stages.append(EditStream(PlainContent()) if is_stream else EditWhole(without_lists))
    if attempt.tags != "off" and not attempt.is_rewritten and attempt.prepared is not None:
        make = tags_in_stream if is_stream else tags_in_body
        stages.append(make(attempt.target.format, attempt.tags, attempt.prepared.contract.dialect))
    if attempt.names.client:
        calls = RenamedCalls(attempt.names)
        stages.append(EditStream(calls) if is_stream else EditWhole(calls.whole))
    if attempt.retained is not None:
        stages.append(EditWhole(partial(compaction_of, attempt.retained)))
    return tuple(stages)


# --- reading a copy of an answer: unpacked, decoded once, and given to a watch ----------------------------------------
# What the watch does with its copy is never a reason for the client not to get its bytes. Only where the answer is
# written anew (`is_needed`) nothing can go on that was not read.


class _Reader(Struct):
    """What reading a stream and reading a whole answer have in common. A piece that is longer than `brief_bytes` takes
    long to read."""

    watch: Watch | None
    is_needed: bool
    brief_bytes: int
    note: str = ""

    def _give_up(self, problem: Exception) -> None:
        """A decoder's fault, whatever it is, stays here; if it is none that was foreseen, it is logged."""
        if self.is_needed:
            raise problem
        self.watch = None
        if isinstance(problem, DecodeError):
            self.note = problem.problem
        else:
            self.note = f"not read: {type(problem).__name__}"
            log_problem("a response could not be read", problem)


class ReadStream(_Reader):
    """A stream, event by event. A piece that ends a turn waits until the turn is saved. `brief_bytes` are `most`, or
    less where an event has begun."""

    watch: StreamWatch | None
    most: int = LONG_BYTES

    def is_long_at_end(self) -> bool:
        return False

    def feed(self, piece: Piece) -> None:
        stream = self.watch
        if stream is None:
            return
        try:
            if piece.problem is not None:
                raise piece.problem
            piece.events = stream.read(piece.plain)
        except Exception as problem:
            self._give_up(problem)
        if stream.has_news:
            piece.data, piece.ending, piece.ends_turn = b"", piece.data, True
        self.brief_bytes = min(self.most, LONG_BYTES - stream.unended_bytes)  # it may end a long event

    def end(self, piece: Piece) -> None:
        if self.watch is not None:
            try:
                piece.events = self.watch.end()
            except Exception as problem:
                self._give_up(problem)

    def cut(self, piece: Piece, problem: str) -> None:
        """What was said so far is a turn cut short."""
        try:
            self.end(piece)
        except DecodeError:
            piece.events = None


class ReadWhole(_Reader):
    """An answer that is one body: it goes on as it comes, but for its last piece, which waits for the record."""

    _pieces: list[bytes] = field(default_factory=list)
    _size: int = 0
    _last: bytes = b""

    def is_long_at_end(self) -> bool:
        self._pieces = [b"".join(self._pieces)]
        return not is_light(self._pieces[0])

    def feed(self, piece: Piece) -> None:
        piece.data, self._last = self._last, piece.data
        if self.watch is None:
            return
        self._pieces.append(piece.plain)
        self._size += len(piece.plain)
        if piece.problem is not None:
            self._give_up(piece.problem)
        elif self._size > MAX_WHOLE_BYTES:
            self._drop()

    def _drop(self) -> None:
        if self.is_needed:
            raise too_large()
        self.watch, self._pieces, self.note = None, [], "too large to remember"

    def end(self, piece: Piece) -> None:
        piece.ending, watch = self._last, self.watch
        if watch is None:
            return
        try:
            piece.reply = watch.read_whole(b"".join(self._pieces))
            if watch.problem is not None and self.is_needed:
                raise watch.problem
        except Exception as problem:
            self._give_up(problem)

    def cut(self, piece: Piece, problem: str) -> None:
        piece.data, self.watch = self._last, None
