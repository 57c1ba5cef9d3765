// What is believed of each provider and model: the source of it, and what refusals taught beyond that.

import { html, useState } from "./preact.js";
import { address, useData } from "./api.js";
import { go } from "./places.js";
import { Ago, Empty, Loaded, many, Panel, Tag, Trouble, Twice, Until, useDoing, View, Words } from "./parts.js";

const KINDS = {
  presence: "required",
  authenticity: "required, unchanged",
  advisory: "helpful",
  forbidden: "refused",
};

export function Contracts({ place }) {
  const [words, setWords] = useState(place.query.q ?? "");
  const from = useData("/api/contracts", { seconds: 15 });
  const doing = useDoing();
  const reset = async (key) => {
    await doing.ask(address("/api/contracts", { key }), { method: "DELETE" });
    from.reload();
  };
  const type = (event) => {
    setWords(event.target.value);
    go(address("/contracts", { q: event.target.value }), { isReplacing: true });
  };
  const fits = (row) => JSON.stringify(Object.values(row)).toLowerCase().includes(words.toLowerCase());
  return html`<${View} title="Contracts" about="What thoughtline knows about each provider, and from which source." json="/api/contracts">
    <${Trouble} problem=${doing.problem} />
    <${Loaded} from=${from}>${(data) => html`
      <${Learned} learned=${data.learned} refused=${data.refusedSeals} reset=${reset} />
      <input data-filter type="search" placeholder="filter by provider, rule or field" aria-label="Filter" value=${words} onInput=${type} />
      <${Panel} title="By provider and model" flush side=${html`<span class="faint">${many(data.contracts.filter(fits).length, "row")}</span>`}>
        <div class="scroll"><table class="cards"><thead><tr><th>contract</th><th>reasoning</th><th>which turns</th><th>where</th><th>if it is lost</th><th>source</th></tr></thead>
        <tbody>${data.contracts.filter(fits).map((row) => html`<${Contract} row=${row} />`)}</tbody></table></div>
      <//>`}<//>
  <//>`;
}

function Contract({ row }) {
  const bounds = [row.onlyWhenThinking && "only while thinking", row.bindsModel && "bound to its model", row.bindsPrefix && "bound to what stands before"].filter(Boolean);
  return html`<tr>
    <td class="tight"><b>${row.name}</b>${row.isOverridden && html` <${Tag} kind="healed">settings<//>`}<div><span class="faint">${row.format}</span></div></td>
    <td data-label="reasoning"><span>${KINDS[row.kind] ?? row.kind}${bounds.map((words) => html`<span class="faint">, ${words}</span>`)}</span></td>
    <td data-label="turns">${row.scope.replaceAll("_", " ")}</td>
    <td data-label="where"><code>${row.carrier}</code></td>
    <td data-label="if lost">${row.ladder.map((rung) => rung.replaceAll("_", " ")).join(", then ") || "nothing"}</td>
    <td data-label="source" class="break"><span><${Source} text=${row.source} /></span></td>
  </tr>`;
}

// A page and the day it was read, as the row has it.
function Source({ text }) {
  const [, words, url, day] = text.match(/^(.*?)\s*\((https?:\/\/\S+), ([\d-]+)\)$/s) ?? [];
  if (!url) return html`<span class="soft"><${Words} text=${text} /></span>`;
  return html`<span class="soft"><${Words} text=${words} /></span> <a href=${url} target="_blank" rel="noreferrer noopener">${new URL(url).hostname}</a>${" "}
    <span class="faint tight">read ${day}</span>`;
}

function Learned({ learned, refused, reset }) {
  const side = learned.length > 0 && html`<span class="push"><${Twice} onClick=${() => reset("")} sure="Reset everything learned?">Reset all<//></span>`;
  return html`<${Panel} title="Learned from refusals" side=${side} flush>
    ${learned.length === 0
      ? html`<${Empty} title="Nothing learned yet"><p>When a provider refuses what its contract allows, the request is corrected, and what helped is kept here for a while.</p><//>`
      : html`<div class="scroll"><table class="cards"><thead><tr><th>for</th><th>what changed</th><th>because of</th><th>learned</th><th>expires in</th><td></td></tr></thead>
        <tbody>${learned.map((one) => html`<tr>
          <td><b>${one.provider}</b> ${one.model}<div><span class="faint break">${one.endpoint}</span></div></td>
          <td data-label="changed"><span>${one.change.replaceAll("_", " ")}${one.field && html` <code>${one.field}</code>`}${one.filler !== null && html` <span class="soft">filled with <code>${JSON.stringify(one.filler)}</code></span>`}${one.scope && html`<span class="faint">, ${one.scope.replaceAll("_", " ")}</span>`}</span></td>
          <td data-label="because of" class="soft">${one.evidence.status} ${one.evidence.code}${one.evidence.isWrapped && ", passed on by a relay"}</td>
          <td data-label="learned" class="tight"><${Ago} at=${one.learnedAt} /></td><td data-label="expires in" class="tight"><${Until} at=${one.expiresAt} /></td>
          <td class="right"><${Twice} onClick=${() => reset(one.key)} sure="Reset it?">Reset<//></td></tr>`)}</tbody></table></div>`}
    ${refused > 0 && html`<p class="body soft">${many(refused, "seal")} a provider refused; none is sent again.</p>`}
  <//>`;
}
