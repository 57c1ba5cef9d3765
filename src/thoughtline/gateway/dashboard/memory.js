// What is remembered: how much, of whom, one entry a turn; and forgetting it.

import { html, useEffect, useRef, useState } from "./preact.js";
import { address, useData } from "./api.js";
import { go, requestPlace, sessionPlace } from "./places.js";
import { Ago, count, Copy, Empty, Facts, Figures, Loaded, many, Panel, short, Tag, Trouble, Twice, Until, useDoing, View } from "./parts.js";

const CACHE = "/api/cache/reasoning";
const FILTERS = ["provider", "model", "session", "tenant", "toolCallId"];

export function Memory({ place }) {
  const query = Object.fromEntries(FILTERS.filter((name) => place.query[name]).map((name) => [name, place.query[name]]));
  const path = address(CACHE, { ...query, limit: place.query.entry ? 200 : 50, cursor: place.query.cursor });
  const from = useData(path, { seconds: 10 });
  const doing = useDoing();
  const [gone, setGone] = useState(null);
  const forget = async (where) => {
    const answer = await doing.ask(address(CACHE, where), { method: "DELETE" });
    if (answer) setGone(answer.deleted);
    from.reload();
  };
  return html`<${View} title="Memory" about="Turns whose reasoning can be put back." json=${path}>
    <${Trouble} problem=${doing.problem} />
    ${gone !== null && html`<p class="good-news" role="status">${many(gone, "turn")} forgotten.</p>`}
    <${Loaded} from=${from}>${(page) => html`
      <${Statistics} stats=${page.stats} />
      <${Search} query=${query} />
      <div class="columns">
        <${Shares} title="By provider" name="provider" of=${page.stats.byProvider} query=${query} />
        <${Shares} title="By model" name="model" of=${page.stats.byModel} query=${query} />
      </div>
      <${Entries} page=${page} query=${query} open=${place.query.entry} forget=${forget} />`}<//>
  <//>`;
}

function Statistics({ stats }) {
  return html`<${Figures} of=${[
    ["turns", count(stats.totalEntries), `${count(stats.memoryEntries)} in memory, ${count(stats.dbEntries)} stored`],
    ["characters", count(stats.totalChars)],
    ["hits", count(stats.hits), "turns that got theirs back"],
    ["misses", count(stats.misses), "turns that did not"],
    ["replays", count(stats.replays)],
    ["replay rate", stats.replayRate],
    ["oldest", html`<${Ago} at=${stats.oldestEntry} />`],
    ["newest", html`<${Ago} at=${stats.newestEntry} />`],
  ]} />`;
}

// One field for the id of a call; the other filters are links, shown as what they are.
function Search({ query }) {
  const [id, setId] = useState(query.toolCallId ?? "");
  const search = (event) => {
    event.preventDefault();
    go(address("/memory", { ...query, toolCallId: id.trim() }));
  };
  return html`<form class="bar" onSubmit=${search}>
    <input data-filter class="filter" type="search" name="toolCallId" placeholder="the id of a tool call" aria-label="Tool call id" value=${id}
      onInput=${(event) => setId(event.target.value)} />
    <button>Find</button>
    ${FILTERS.filter((name) => query[name]).map((name) => html`<a class="button" href=${address("/memory", { ...query, [name]: "" })}
      title="Without this filter">${name}: ${query[name].slice(0, 40)} ×</a>`)}
  </form>`;
}

function Shares({ title, name, of, query }) {
  const rows = Object.entries(of).sort(([, one], [, other]) => other.entries - one.entries);
  if (rows.length === 0) return null;
  return html`<${Panel} title=${title} flush><div class="rows">${rows.slice(0, 8).map(
    ([word, share]) => html`<a class="share" href=${address("/memory", { ...query, [name]: query[name] === word ? "" : word })}
      aria-current=${query[name] === word ? "true" : undefined}>
      <span class="cut">${word}</span><span class="soft">${many(share.entries, "turn")}</span><span class="faint">${count(share.chars)} chars</span></a>`,
  )}</div><//>`;
}

function Entries({ page, query, open, forget }) {
  const isFiltered = Object.keys(query).length > 0;
  if (page.entries.length === 0) return html`<${Panel} flush><${Nothing} isFiltered=${isFiltered} /><//>`;
  const words = isFiltered ? "Forget matching turns" : "Forget everything";
  const side = html`<span class="push"><${Twice} onClick=${() => forget(query)} sure=${`${words}, really?`}>${words}<//></span>`;
  return html`<${Panel} title="Entries" side=${side} flush>
    <div class="entry-head"><span>call or turn</span><span>model</span><span>session</span><span class="right">characters</span><span class="right">age</span><span class="right">expires in</span></div>
    ${open && !page.entries.some((entry) => entry.id === open) && html`<p class="notice">Turn ${short(open)} is not in this list: it was forgotten, or is further back.</p>`}
    ${page.entries.map((entry) => html`<${Entry} key=${entry.id} entry=${entry} isOpen=${entry.id === open} forget=${forget} />`)}
    ${page.cursor && html`<p class="empty"><a class="button" href=${address("/memory", { ...query, cursor: page.cursor })}>Older turns</a></p>`}
  <//>`;
}

function Nothing({ isFiltered }) {
  if (isFiltered) return html`<${Empty} title="No matching turns"><p>They expired, were forgotten, or belong to another provider, model or session.</p><p><a href="/memory">Show all turns</a></p><//>`;
  return html`<${Empty} title="Nothing is remembered yet"><p>The first answer of a reasoning model will appear here.</p><p><a class="button" href="/connect">Connect a client</a></p><//>`;
}

function Entry({ entry, isOpen, forget }) {
  const where = { toolCallId: entry.toolCallId, session: entry.session, tenant: entry.tenant };
  const place = useRef(null);
  useEffect(() => { if (isOpen) place.current.scrollIntoView({ block: "center" }); }, [isOpen]);
  return html`<details class="entry" open=${isOpen} ref=${place}>
    <summary data-row>
      <code class="cut">${entry.toolCallId ?? html`<span class="faint">turn ${short(entry.id)}</span>`}</code>
      <span class="cut wide">${entry.model} <span class="faint">${entry.provider}</span></span>
      <span class="cut wide soft">${entry.session ?? "–"}</span>
      <span class="right">${count(entry.charCount)}</span>
      <span class="right"><${Ago} at=${entry.createdAt} /></span>
      <span class="right wide"><${Until} at=${entry.expiresAt} /></span>
    </summary>
    <div>
      <div class="thought-text">${entry.reasoning || html`<span class="faint">It is encrypted and can't be read.</span>`}</div>
      <${Facts} of=${[
        ["turn", html`<code>${entry.id}</code>`],
        ["calls", entry.toolCallIds.length > 0 && html`<code>${entry.toolCallIds.join(", ")}</code>`],
        ["made by", `${entry.model} at ${entry.provider}, ${entry.format}`],
        ["session", entry.session && html`<a href=${sessionPlace(entry.session, entry.tenant)}>${entry.session}</a>`],
        ["tenant", html`<code>${entry.tenant}</code>`],
        ["kinds", entry.kinds.join(", ")],
        !entry.isComplete && ["state", html`<${Tag} kind="missing">cut short<//>`],
        entry.outcome && ["request", html`<a href=${requestPlace(entry.outcome.request)}>${entry.outcome.request}</a>`],
      ]} />
      <div class="bar"><${Copy} text=${entry.reasoning}>Copy reasoning<//>
        <${Twice} onClick=${() => forget(where)} disabled=${!entry.toolCallId} title=${entry.toolCallId ? "" : "It has no tool call to identify it: forget its session instead"}
          sure="Forget this turn?">Forget this turn<//></div>
    </div>
  </details>`;
}
