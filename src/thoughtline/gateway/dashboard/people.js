// Who makes requests: those with a client key by its name, others by their tenant; and all that is kept of one.

import { html, useState } from "./preact.js";
import { address, useData } from "./api.js";
import { Plot, PLOTS } from "./health.js";
import { Csv, Ranges, Totals } from "./history.js";
import { go } from "./places.js";
import { Ago, count, Empty, Loaded, many, Panel, Tag, Trouble, Twice, useDoing, View } from "./parts.js";

export const personPlace = (id) => `/people/${encodeURIComponent(id)}`;

const Name = ({ of }) => (of.name ? html`<b>${of.name}</b>` : html`<code>${of.id.slice(0, 14)}</code> <span class="faint">own key</span>`);

export function People({ place }) {
  const { range = "30d" } = place.query;
  const from = useData(address("/api/people", { range }), { seconds: 30 });
  return html`<${View} title="People" about="Who uses this gateway: by the name of a client key, or by the provider's key they come with." json=${address("/api/people", { range })}>
    <div class="bar"><${Ranges} value=${range} onChange=${(value) => go(address("/people", { range: value }), { isReplacing: true })} /><span class="push"><${Csv} path="/api/people" query=${{ range }} /></span></div>
    <${Loaded} from=${from}>${({ people }) => html`<${Panel} flush>${people.length === 0
      ? html`<${Empty} title="Nobody yet"><p>People appear with their first request, or when they get a client key under <a href="/settings">Settings</a>.</p><//>`
      : html`<div class="scroll" tabIndex="0" role="region" aria-label="People"><table class="cards">
        <thead><tr><th>name</th><th>clients</th><th>models</th>${COLUMNS.map(([, words]) => html`<th class="number">${words}</th>`)}<th class="number">last seen</th></tr></thead>
        <tbody>${people.map((one) => html`<tr><td class="break"><a data-row href=${personPlace(one.id)}><${Name} of=${one} /></a></td>
          <td data-label="clients">${one.clients.join(", ")}</td><td data-label="models" class="break">${one.models.slice(0, 3).join(", ")}${one.models.length > 3 && ` and ${one.models.length - 3} more`}</td>
          ${COLUMNS.map(([name, words]) => html`<td data-label=${words} class="number">${count(one.figures[name])}</td>`)}
          <td data-label="last seen" class="number"><${Ago} at=${one.lastSeen} /></td></tr>`)}</tbody></table></div>`}<//>`}<//>
  <//>`;
}

const COLUMNS = [["requests", "requests"], ["restored", "restored"], ["avoided", "avoided"], ["errors", "errors"], ["inputTokens", "input tokens"], ["cachedTokens", "cached"], ["reasoningTokens", "reasoning"]];

export function Person({ id, place }) {
  const { range = "30d" } = place.query;
  const path = `/api/people/${encodeURIComponent(id)}`;
  const from = useData(address(path, { range }), { seconds: 30 });
  const series = useData(from.data ? address("/api/series", { tenant: from.data.id, range }) : "");
  const doing = useDoing();
  const [gone, setGone] = useState(null);
  const forget = async () => {
    const answer = await doing.ask(path, { method: "DELETE" });
    if (answer) setGone(answer);
  };
  const title = from.data?.name || gone?.name || id;
  return html`<${View} title=${title} json=${address(path, { range })}>
    ${gone && html`<div class="good-news" role="status">Deleted: ${many(gone.turns, "turn")} in ${many(gone.sessions, "session")}, and ${many(gone.requests, "request")} of the history with their figures. ${gone.note}</div>`}
    <${Trouble} problem=${doing.problem} />
    ${!gone && html`<${Loaded} from=${from}>${(one) => html`
      <div class="bar"><${Ranges} value=${range} onChange=${(value) => go(address(personPlace(id), { range: value }), { isReplacing: true })} />
        ${one.keys.map((key) => html`<span>key <code>${key.id}</code> <${Tag} kind=${key.state} /></span>`)}
        <span class="push"><a class="button" href=${address("/history", { q: `tenant:${one.id}`, range })}>Requests</a>
        <${Twice} onClick=${forget} disabled=${doing.isBusy} sure="Delete all of it?" title="Turns, sessions, history and figures of this person, here and at all replicas">Delete this person's data<//></span></div>
      <${Loaded} from=${series}>${(data) => html`<${Totals} total=${data.total} before=${data.before} />
        <div class="plots">${PLOTS.slice(0, 3).map((plot) => html`<${Plot} key=${`${plot.name} ${range}`} plot=${plot} data=${data} />`)}</div>`}<//>
      <${Shares} title="Providers" of=${one.byProvider} /><${Shares} title="Models" of=${one.byModel} /><${Shares} title="Clients" of=${one.byClient} /><${Shares} title="Outcomes" of=${one.byOutcome} />
      <p class="soft">${many(one.turns, "turn")} of this person can be restored.</p>`}<//>`}
  <//>`;
}

function Shares({ title, of }) {
  if (!of.length) return null;
  return html`<${Panel} title=${title} flush><div class="scroll" tabIndex="0" role="region" aria-label=${title}><table class="cards"><thead><tr><th>name</th><th class="number">requests</th><th class="number">turns restored</th><th class="number">tokens</th></tr></thead>
    <tbody>${of.map((one) => html`<tr><td class="break">${one.name || "unknown"}</td><td data-label="requests" class="number">${count(one.requests)}</td>
      <td data-label="turns restored" class="number">${count(one.restored)}</td><td data-label="tokens" class="number">${count(one.tokens)}</td></tr>`)}</tbody></table></div><//>`;
}
