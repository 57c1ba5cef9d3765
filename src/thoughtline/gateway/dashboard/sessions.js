// Sessions: what each is about, who began it with which model, and when it was last active.

import { html, useState } from "./preact.js";
import { useData } from "./api.js";
import { sessionPlace } from "./places.js";
import { Ago, clock, count, Empty, Loaded, Panel, View } from "./parts.js";

export function Sessions() {
  const [words, setWords] = useState("");
  const from = useData("/api/sessions?limit=200", { seconds: 15 });
  return html`<${View} title="Sessions" about="Conversations with remembered turns." json="/api/sessions?limit=200">
    <input data-filter type="search" placeholder="a title, a model, a client, a session or a tenant" aria-label="Filter" value=${words} onInput=${(event) => setWords(event.target.value)} />
    <${Loaded} from=${from}>${({ sessions }) => html`<${Panel} flush>
      ${sessions.length === 0
        ? html`<${Empty} title="No session yet"><p>A session begins with the first remembered answer.</p><p><a class="button" href="/connect">Connect a client</a></p><//>`
        : html`<${Rows} sessions=${sessions.filter((row) => fits(row, words))} />`}
    <//>`}<//>
  <//>`;
}

const fits = (row, words) =>
  [titleOf(row), row.id, row.tenant, row.client, ...row.models].join("\n").toLowerCase().includes(words.trim().toLowerCase());

function Rows({ sessions }) {
  if (sessions.length === 0) return html`<${Empty} title="No session has these words" />`;
  return html`<div class="scroll"><table class="cards sessions">
    <thead><tr><th>session</th><th>models</th><th>tenant</th><th class="number">turns</th><th class="number">last activity</th></tr></thead>
    <tbody>${sessions.map((row) => html`<tr key=${`${row.tenant} ${row.id}`}>
      <td class="break"><a data-row class="name" href=${sessionPlace(row.id, row.tenant)}>${titleOf(row)}</a>
        <div class="faint cut">${row.titledBy === "words" && row.clientTitle ? `${row.clientTitle}, ` : ""}${row.title !== row.id && html`<code>${row.id}</code>`}</div></td>
      <td data-label="models" class="soft">${row.models.map((name) => html`<div class="break">${name}</div>`)}</td>
      <td data-label="tenant"><code title=${row.tenant}>${row.tenant.slice(0, 10)}</code></td>
      <td data-label="turns" class="number">${count(row.entries)}</td>
      <td data-label="last activity" class="number"><${Ago} at=${row.newestEntry} /></td></tr>`)}</tbody></table></div>`;
}

// A name, or the first words; otherwise who began it, with which model, and when.
export function titleOf(row) {
  if (row.title) return row.title;
  if (!row.startedAt) return row.id;
  const who = [row.clientTitle, row.model].filter(Boolean).join(" on ");
  return `${who}, ${momentOf(row.startedAt)}`;
}

function momentOf(at) {
  const [then, now] = [new Date(at), new Date()];
  const time = clock(at).slice(0, 5);
  return then.toDateString() === now.toDateString() ? time : `${then.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}
