// Requests as they come: the list at the left, the one that is looked at to its right.

import { html, useEffect, useRef, useState } from "./preact.js";
import { address, ask, listen, useData } from "./api.js";
import { Legend } from "./legend.js";
import { go } from "./places.js";
import { RequestDetail } from "./request.js";
import { Ago, clock, count, Counts, Empty, Json, many, ms, Tag, Trouble, Words } from "./parts.js";

const FILTERS = ["session", "tenant", "caller", "client", "provider", "model", "status", "outcome"];
const MOST_SHOWN = 500;

// `provider:kimi -status:200 words` as the API's parameters; what names none is looked for as text.
export function parsed(line) {
  const query = {};
  const words = [];
  for (const word of line.split(/\s+/).filter(Boolean)) {
    const [, minus, name, value] = /^(-?)([a-z]+):(.+)$/i.exec(word) ?? [];
    if (name && FILTERS.includes(name.toLowerCase())) query[name.toLowerCase()] = minus ? `!${value}` : value;
    else words.push(word);
  }
  return words.length ? { ...query, text: words.join(" ") } : query;
}

// Words that look like a filter, and are none.
export const strangers = (line) => line.split(/\s+/).map((word) => /^-?([a-z]+):(?!\/\/).+$/i.exec(word)?.[1]).filter((name) => name && !FILTERS.includes(name.toLowerCase()));

// The rows of the API, and the events over them. An event may not fit the filter: then the API is asked again.
function useRequests(query, onState) {
  const [rows, setRows] = useState(null);
  const [problem, setProblem] = useState(null);
  const [cursor, setCursor] = useState(null);
  const [lost, setLost] = useState(0);
  const path = address("/api/requests", { ...query, limit: 100 });
  const isFiltered = Object.keys(query).length > 0;
  const load = async (from) => {
    try {
      const page = await ask(from ? address("/api/requests", { ...query, limit: 100, cursor: from }) : path);
      setRows((before) => merge(from && before ? before : [], page.requests));
      setCursor(page.cursor);
      setProblem(null);
    } catch (caught) {
      setProblem(caught);
    }
  };
  useEffect(() => {
    load();
    let timer;
    const later = () => { timer ??= setTimeout(() => { timer = undefined; load(); }, 250); };
    const stop = listen({
      onRequest: (row) => (isFiltered ? later() : setRows((before) => merge(before ?? [], [row]).slice(0, MOST_SHOWN))),
      onLost: (number) => { setLost((before) => before + number); later(); },
      onState: (state) => { onState(state); if (state === "good") later(); },
    });
    return () => { clearTimeout(timer); stop(); };
  }, [path]);
  return { rows, problem, cursor, lost, path, more: () => load(cursor) };
}

const PHASES = ["begun", "streaming", "done"];

// Newest first, each once, by what is known last.
function merge(before, rows) {
  const known = new Map(before.map((row) => [row.id, row]));
  for (const row of rows) {
    const other = known.get(row.id);
    if (!other || PHASES.indexOf(row.phase) >= PHASES.indexOf(other.phase)) known.set(row.id, row);
  }
  return [...known.values()].sort((one, other) => (one.at < other.at ? 1 : -1));
}

export function Live({ id, place }) {
  const [line, setLine] = useState(place.query.q ?? "");
  const [state, setState] = useState("");
  const timer = useRef();
  const filter = place.query.q ?? "";
  const found = useRequests(parsed(filter), setState);
  const type = (event) => {
    setLine(event.target.value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go(address(location.pathname, { q: event.target.value.trim() }), { isReplacing: true }), 200);
  };
  useEffect(() => { document.title = "Live · thoughtline"; }, []);
  const chosen = found.rows?.find((row) => row.id === id);
  return html`<div class=${id ? "split chosen" : "split"}>
    <div class="list">
      <div class="top">
        <div class="head"><h1>Live</h1><${Connection} state=${state} /><${Json} path=${found.path} /></div>
        <${Strip} />
        <${Legend} />
        <input data-filter type="search" class="filter" placeholder="provider:deepseek status:4xx outcome:healed, or any words" aria-label="Filter"
          value=${line} onInput=${type} />
        <${Trouble} problem=${found.problem} />
        ${found.lost > 0 && html`<p class="faint">${many(found.lost, "event")} came too fast to be shown; the list was loaded again.</p>`}
      </div>
      ${found.rows && html`<div class="rows">${found.rows.map(
        (row) => html`<${RequestRow} key=${row.id} row=${row} isChosen=${row.id === id} filter=${filter} />`,
      )}</div>`}
      ${found.cursor && html`<p class="empty"><button onClick=${found.more}>Older requests</button></p>`}
      ${found.rows?.length === 0 && html`<${Nothing} isFiltered=${filter !== ""} strange=${strangers(filter)} />`}
    </div>
    <div class="detail">${id
      ? html`<${RequestDetail} id=${id} key=${id} version=${chosen ? chosen.phase : ""} back=${address("/live", { q: filter })} />`
      : html`<${Empty} title="No request chosen"><p>Choose one on the left, or move through the list with <kbd>j</kbd> and <kbd>k</kbd>.</p><//>`}
    </div>
  </div>`;
}

function Nothing({ isFiltered, strange }) {
  if (strange.length) return html`<${Empty} title=${`There is no filter ${strange[0]}`}><p>Filters: ${FILTERS.join(", ")}. With a minus before one, all others: <code>-status:200</code>.</p><//>`;
  if (isFiltered) return html`<${Empty} title="No matching requests"><p>The latest requests since the start are kept in memory. Clear the filter to see all of them.</p><//>`;
  return html`<${Empty} title="Waiting for the first request">
    <p>Point a client at <code>${location.origin}</code> and it shows up here.</p>
    <p><a class="button" href="/connect">Connect a client</a></p>
  <//>`;
}

function Connection({ state }) {
  const words = { good: "listening", bad: "connecting again…" }[state] ?? "connecting…";
  return html`<span class="soft" role="status"><span class=${`dot ${state} ${state === "good" ? "beating" : ""}`}></span> ${words}</span>`;
}

// The day in one line.
function Strip() {
  const { data } = useData("/api/series", { seconds: 30 });
  if (!data) return null;
  const sum = (name) => data[name].reduce((total, value) => total + value, 0);
  const requests = sum("requests");
  const bad = sum("refused") + sum("errors");
  const since = data.startedAt * 1000;
  const span = Date.now() - since < 86400e3 ? html`Since the start, <${Ago} at=${new Date(since).toISOString()} />` : "Last 24 h";
  return html`<p class="soft">${span}: <b>${count(requests)}</b> ${requests === 1 ? "request" : "requests"}, <b>${count(sum("avoided"))}</b> refusals
    avoided, <b>${count(sum("restored"))}</b> turns restored, <b>${count(sum("healed"))}</b> healed, ${
    bad ? html`<b class="danger" title="declined: by the gateway; refused: by the provider; failed: no usable response">${count(bad)} failed</b>` : "none failed"}.</p>`;
}

export function RequestRow({ row, isChosen, filter = "" }) {
  const isOver = row.phase === "done";
  const isBad = row.status >= 400 || row.outcome === "failed";
  const state = isOver ? html`<b class=${isBad ? "bad" : ""}>${row.status || "gone"}</b>` : html`<b class="pending">${row.phase}</b>`;
  return html`<a class="row request" data-row="follow" href=${address(`/live/${encodeURIComponent(row.id)}`, { q: filter })}
    aria-current=${isChosen ? "true" : undefined}>
    <span class="status">${state}<time class="faint">${clock(row.at)}</time></span>
    <span class="cut"><b>${row.model || row.path}</b>${row.provider && html` <span class="soft">${row.provider}</span>`}${row.caller && html` <span class="soft">${row.caller}</span>`}</span>
    <span class="faint right">${isOver ? ms(row.totalMs) : html`<span class="dot beating"></span>`}</span>
    <span class="second">
      ${isOver && !["ok", "restored"].includes(row.outcome) && html`<${Tag} kind=${row.outcome} />`}
      <${Counts} of=${row.outcome === "healed" ? { ...row, healed: 0 } : row} />
      <span class="cut"><${Words} text=${row.message || (["ok", "restored"].includes(row.outcome) ? row.session || row.client : row.summary) || ""} /></span>
    </span>
  </a>`;
}
