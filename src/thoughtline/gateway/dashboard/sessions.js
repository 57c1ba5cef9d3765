// Sessions, and the turns of one: in order, with what was thought folded away, and where another model took over.

import { html, useState } from "./preact.js";
import { address, useData } from "./api.js";
import { go, requestPlace, sessionPlace } from "./places.js";
import { Ago, count, Counts, Empty, Loaded, many, ms, Panel, short, Tag, Twice, useDoing, Trouble, View } from "./parts.js";

export function Sessions() {
  const [words, setWords] = useState("");
  const from = useData("/api/sessions?limit=200", { seconds: 15 });
  const fits = (row) => `${row.id} ${row.tenant}`.toLowerCase().includes(words.toLowerCase());
  return html`<${View} title="Sessions" about="Conversations with remembered turns." json="/api/sessions?limit=200">
    <input data-filter type="search" placeholder="a session or a tenant" aria-label="Filter" value=${words} onInput=${(event) => setWords(event.target.value)} />
    <${Loaded} from=${from}>${({ sessions }) => html`<${Panel} flush>
      ${sessions.length === 0
        ? html`<${Empty} title="No session yet"><p>A session begins with the first remembered answer.</p><p><a class="button" href="/connect">Connect a client</a></p><//>`
        : html`<div class="scroll"><table class="cards">
          <thead><tr><th>session</th><th>tenant</th><th class="number">turns</th><th class="number">characters</th><th class="number">last turn</th></tr></thead>
          <tbody>${sessions.filter(fits).map((row) => html`<tr>
            <td class="break"><a data-row href=${sessionPlace(row.id, row.tenant)}>${row.id}</a>${row.id.startsWith("~") && html` <span class="faint">unnamed</span>`}</td>
            <td data-label="tenant"><code title=${row.tenant}>${row.tenant.slice(0, 10)}</code></td>
            <td data-label="turns" class="number">${count(row.entries)}</td><td data-label="characters" class="number">${count(row.chars)}</td>
            <td data-label="last turn" class="number"><${Ago} at=${row.newestEntry} /></td></tr>`)}</tbody></table></div>`}
    <//>`}<//>
  <//>`;
}

export function Session({ id, place }) {
  const path = address(`/api/sessions/${encodeURIComponent(id)}`, place.query);
  const from = useData(path, { seconds: 10 });
  const [isOpen, open] = useState(false);
  const doing = useDoing();
  const cache = address("/api/cache/reasoning", { session: id, tenant: from.data?.tenant, limit: 200 });
  const entries = useData(isOpen && from.data ? cache : "");
  const thoughts = new Map(entries.data?.entries.map((entry) => [entry.id, entry.reasoning]) ?? []);
  const forget = async () => {
    const where = { session: id, tenant: from.data.tenant };
    if (await doing.ask(address("/api/cache/reasoning", where), { method: "DELETE" })) go("/sessions");
  };
  return html`<${View} title=${id} json=${path}>
    <div class="bar"><a data-back href="/sessions">← Sessions</a>
      ${from.data && html`<span class="soft">${many(from.data.turns.length, "turn")}, tenant <code>${from.data.tenant}</code></span>
        <a href=${address("/live", { q: `session:${id}` })}>its requests</a>
        <span class="push"><${Twice} onClick=${forget} sure="Forget all its turns?">Forget this session<//></span>`}
    </div>
    <${Trouble} problem=${doing.problem} />
    <${Loaded} from=${from}>${({ turns, cursor }) => html`
      ${cursor && html`<p><a class="button" href=${address(`/sessions/${encodeURIComponent(id)}`, { ...place.query, cursor })}>Earlier turns</a></p>`}
      <ol class="timeline">${turns.map((turn, index) => html`<${Turn} turn=${turn} before=${turns[index - 1]}
        thought=${thoughts.get(turn.id)} onOpen=${() => open(true)} />`)}</ol>`}<//>
  <//>`;
}

function Turn({ turn, before, thought, onOpen }) {
  const { outcome } = turn;
  const hasMoved = before && (before.model !== turn.model || before.provider !== turn.provider);
  return html`
    ${hasMoved && html`<li><time></time><span class="dot slow"></span><div class="what"><b>${before.provider}/${before.model} → ${turn.provider}/${turn.model}</b></div></li>`}
    ${outcome?.checkpoints > 0 && html`<li><time></time><span class="dot"></span><div class="what"><span><${Tag} kind="checkpoints">${many(outcome.checkpoints, "checkpoint")}<//>${" "}
      quoted here, ${count(outcome.addedChars)} characters${outcome.handoff ? ` of what ${outcome.handoff} thought` : ""}</span></div></li>`}
    <li><time title=${turn.createdAt}><${Ago} at=${turn.createdAt} /></time><span class=${turn.isComplete ? "dot good" : "dot bad"}></span>
      <div class="what">
        <div class="bar"><b>${turn.model}</b><span class="soft">${turn.provider}</span>
          ${!turn.isComplete && html`<${Tag} kind="missing">cut short<//>`}
          ${turn.agent && html`<${Tag}>agent ${turn.agent}<//>`}
          ${outcome && html`<${Counts} of=${outcome} />`}
          ${outcome && html`<span class="faint">${ms(outcome.upstreamMs)}, ${ms(outcome.ownMs)} here</span>
            <a class="push" href=${requestPlace(outcome.request)}>request ${short(outcome.request)}</a>`}
        </div>
        ${turn.toolCallIds.length > 0 && html`<p class="soft break">calls ${turn.toolCallIds.map((id) => html`<a href=${address("/memory", { toolCallId: id })}><code>${id}</code></a> `)}</p>`}
        <details onToggle=${(event) => event.target.open && onOpen()}>
          <summary>${count(turn.charCount)} characters of reasoning (${turn.kinds.join(", ") || "none"})</summary>
          <div class="thought-text">${thought === undefined ? "Loading…" : thought || "It is encrypted and can't be read."}</div>
        </details>
      </div>
    </li>`;
}
