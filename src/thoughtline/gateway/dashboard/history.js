// What was: requests of a range of time, figures beside those of the range before, and sums by what somebody asks for.

import { html, useEffect, useRef, useState } from "./preact.js";
import { address, ask, useData } from "./api.js";
import { Plot, PLOTS } from "./health.js";
import { parsed, RequestRow, strangers } from "./live.js";
import { go } from "./places.js";
import { bytes, count, Empty, Figures, Json, Loaded, many, ms, Panel, Trouble, View } from "./parts.js";

export const RANGES = [["15m", "15 minutes"], ["1h", "hour"], ["6h", "6 hours"], ["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"]];
const BY = ["provider", "model", "client", "caller", "tenant", "day", "outcome", "code", "route"];

export function Ranges({ value, onChange }) {
  return html`<label>Last <select name="range" value=${value} onChange=${(event) => onChange(event.target.value)}>
    ${RANGES.map(([name, words]) => html`<option value=${name} selected=${name === value}>${words}</option>`)}</select></label>`;
}

export const Csv = ({ path, query }) => html`<a class="json" href=${address(path, { ...query, format: "csv" })} download data-raw>CSV</a>`;

// A number beside that of the range before.
function compared(now, before) {
  if (!before) return now ? "none before" : "";
  const change = Math.round((100 * (now - before)) / before);
  return `${change > 0 ? "+" : ""}${count(change)} % of ${count(before)}`;
}

export function Totals({ total, before }) {
  const shown = [["requests", "requests"], ["avoided", "refusals avoided"], ["restored", "turns restored"], ["healed", "healed"], ["dropped", "blocks not read by providers"], ["missing", "turns missing"],
    ["refused", "refused"], ["errors", "errors"], ["inputTokens", "input tokens"], ["cachedTokens", "of them cached"], ["reasoningTokens", "reasoning tokens"]];
  return html`<${Figures} of=${[...shown.map(([name, words]) => [words, count(total[name]), compared(total[name], before[name])]),
    ["own time, average", ms(total.ownMs), before.ownMs === null ? "" : `${ms(before.ownMs)} before`]]} />`;
}

export function History({ place }) {
  const { range = "24h", q = "", by = "provider" } = place.query;
  const [line, setLine] = useState(q);
  const timer = useRef();
  const move = (changes) => go(address("/history", { range, q, by, ...changes }), { isReplacing: true });
  const type = (event) => {
    setLine(event.target.value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => move({ q: event.target.value.trim() }), 300);
  };
  const strange = strangers(q);
  const { text, ...filter } = parsed(q);
  const series = useData(address("/api/series", { ...filter, range }), { seconds: 60 });
  return html`<${View} title="History" about="Requests and figures of a range of time, of all workers and replicas. The range before it stands beside it." json=${address("/api/requests", { ...filter, text, range })}>
    <div class="bar"><${Ranges} value=${range} onChange=${(value) => move({ range: value })} /></div>
    <input data-filter type="search" class="filter" placeholder="caller:ann model:deepseek-* -status:200, or words of ids, names and errors" aria-label="Filter" value=${line} onInput=${type} />
    ${strange.length > 0 && html`<p class="problem" role="alert">There is no filter <b>${strange[0]}</b>. It is looked for as a word.</p>`}
    <${Loaded} from=${series}>${(data) => html`
      ${!data.isKept && html`<p class="soft">This store keeps no history: what is shown begins at the last start. Name a durable store as <code>url</code> under <code>[store]</code> in the settings.</p>`}
      <${Totals} total=${data.total} before=${data.before} />
      <div class="plots">${PLOTS.slice(0, 4).map((plot) => html`<${Plot} key=${`${plot.name} ${range}`} plot=${plot} data=${data} />`)}</div>`}<//>
    <${Numbers} query=${{ ...filter, range }} by=${by} onBy=${(value) => move({ by: value })} />
    <${Requests} query=${{ ...filter, text, range }} filter=${q} />
  <//>`;
}

function Numbers({ query, by, onBy }) {
  const from = useData(address("/api/numbers", { ...query, by }), { seconds: 60 });
  const side = html`<label>by <select name="by" value=${by} onChange=${(event) => onBy(event.target.value)}>
    ${BY.map((name) => html`<option value=${name} selected=${name === by}>${name === "caller" ? "person" : name}</option>`)}</select></label>
    <span class="push"><${Csv} path="/api/numbers" query=${{ ...query, by }} /> <${Json} path=${address("/api/numbers", { ...query, by })} /></span>`;
  return html`<${Panel} title="Numbers" side=${side} flush><${Loaded} from=${from}>${(data) => data.rows.length === 0
    ? html`<${Empty} title="Nothing in this range" />`
    : html`<div class="scroll" tabIndex="0" role="region" aria-label="Numbers"><table class="cards"><thead><tr><th>${by === "caller" ? "person" : by}</th>${COLUMNS.map(([, words]) => html`<th class="number">${words}</th>`)}</tr></thead>
      <tbody>${data.rows.map((row) => html`<tr><td class="break"><b>${row.name || "none"}</b></td>
        ${COLUMNS.map(([name, words]) => html`<td data-label=${words} class="number">${name === "ownMs" ? ms(row[name]) : count(row[name])}</td>`)}</tr>`)}</tbody></table></div>
      <p class="body faint">${data.isKept ? `${many(data.keptRequests, "request")} in ${bytes(data.keptBytes)} of history.` : "No history is kept."}</p>`}<//><//>`;
}

const COLUMNS = [["requests", "requests"], ["avoided", "avoided"], ["restored", "restored"], ["healed", "healed"], ["dropped", "not read"], ["errors", "errors"], ["refused", "refused"],
  ["inputTokens", "input"], ["cachedTokens", "cached"], ["outputTokens", "output"], ["reasoningTokens", "reasoning"], ["ownMs", "own time"]];

function Requests({ query, filter }) {
  const path = address("/api/requests", { ...query, limit: 50 });
  const from = useData(path);
  const [older, setOlder] = useState({ path: "", rows: [], cursor: null, problem: null });
  useEffect(() => setOlder({ path: "", rows: [], cursor: null, problem: null }), [path]);
  const isMore = older.path === path;
  const cursor = isMore ? older.cursor : from.data?.cursor;
  const more = async () => {
    try {
      const page = await ask(address("/api/requests", { ...query, limit: 50, cursor }));
      setOlder((before) => ({ path, rows: [...(isMore ? before.rows : []), ...page.requests], cursor: page.cursor, problem: null }));
    } catch (problem) {
      setOlder((before) => ({ ...before, problem }));
    }
  };
  return html`<${Panel} title="Requests" flush side=${html`<span class="push"><${Csv} path="/api/requests" query=${{ ...query, limit: 200 }} /> <${Json} path=${path} /></span>`}>
    <${Loaded} from=${from}>${(data) => html`<div class="rows dated">${[...data.requests, ...(isMore ? older.rows : [])].map((row) => html`<${RequestRow} key=${row.id} row=${row} filter=${filter} />`)}</div>
      ${data.requests.length === 0 && html`<${Empty} title="No matching requests in this range" />`}
      <${Trouble} problem=${older.problem} />
      ${cursor && html`<p class="empty"><button onClick=${more}>Older requests</button></p>`}`}<//>
  <//>`;
}
