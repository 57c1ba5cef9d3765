// What to set in a client, and a light that says when it has come through.

import { html, useState } from "./preact.js";
import { address, useData } from "./api.js";
import { go } from "./places.js";
import { Ago, Copy, Empty, Panel, Trouble, View, Words } from "./parts.js";

export function Connect({ place }) {
  const { client = "", provider = "", model = "" } = place.query;
  const path = address("/api/connect", { client, provider, model, url: location.origin });
  const from = useData(path, { seconds: 2 });
  const providers = useData("/api/providers");
  const set = (change) => go(address("/connect", { client, provider, model, ...change }), { isReplacing: true });
  const chosen = from.data?.clients.find((one) => one.name === client);
  return html`<${View} title="Connect" about="Point a client at this gateway." json=${path}>
    <${Trouble} problem=${from.problem} />
    <div class="bar bottom">
      <label>Client
        <select data-filter name="client" value=${client} onChange=${(event) => set({ client: event.target.value, model: "" })}>
          <option value="">choose one</option>
          ${from.data?.clients.map((one) => html`<option value=${one.name} selected=${one.name === client}>${one.title}</option>`)}
        </select></label>
      <label>Provider
        <select name="provider" value=${provider} onChange=${(event) => set({ provider: event.target.value, model: "" })}>
          <option value="">${chosen ? `${chosen.provider}, the default` : "the default"}</option>
          ${providers.data?.providers.map((one) => html`<option value=${one.name} selected=${one.name === provider}>${one.name}</option>`)}
        </select></label>
      <${Model} value=${model} example=${providers.data?.providers.find((one) => one.name === (provider || chosen?.provider))?.exampleModel} onSet=${(value) => set({ model: value })} />
    </div>
    ${chosen && html`<${Light} client=${chosen} />`}
    ${from.data && (from.data.setup
      ? html`<${Setup} setup=${from.data.setup} client=${chosen} provider=${provider} />`
      : html`<${Clients} clients=${from.data.clients} />`)}
  <//>`;
}

function Model({ value, example, onSet }) {
  const [words, setWords] = useState(null);
  return html`<label>Model
    <input name="model" placeholder=${example ?? "the provider's own name for it"} value=${words ?? value}
      onInput=${(event) => setWords(event.target.value)} onChange=${(event) => { onSet(event.target.value.trim()); setWords(null); }} /></label>`;
}

function Light({ client }) {
  if (client.lastSeen) {
    return html`<div class="light" role="status"><span class="dot good"></span><span><b>${client.title} has sent requests here.</b> The last one came <${Ago} at=${client.lastSeen} />.</span>
      <a class="push" href="/live">See it live</a></div>`;
  }
  return html`<div class="light" role="status"><span class="dot beating"></span><span>Waiting for the first request of ${client.title}. This light turns green when it comes.</span></div>`;
}

function Setup({ setup, client, provider }) {
  const options = provider ? ` --provider ${provider}` : "";
  return html`<div class="setup">
    <${Panel} title=${`${client?.title ?? setup.client} through ${setup.base}`} side=${html`<span class="push"><${Copy} text=${setup.text}>Copy all<//></span>`}>
      ${setup.steps.map((step) => html`<div class="bar"><b><${Words} text=${step.where} /></b><span class="push"><${Copy} plain text=${step.lines} /></span></div><pre>${step.lines.trim()}</pre>`)}
      ${setup.notes.length > 0 && html`<ul>${setup.notes.map((note) => html`<li class="soft">– <${Words} text=${note} /></li>`)}</ul>`}
      <p class="faint">In a terminal: <code>thoughtline run ${setup.client}${options}</code> starts it with all of this set, <code>thoughtline connect ${setup.client}${options}</code> shows it. <code>YOUR_KEY</code> is the provider's key, or a <a href="/settings">client key</a> of this gateway where it has some.</p>
    <//></div>`;
}

function Clients({ clients }) {
  if (clients.length === 0) return html`<${Empty} title="No known clients" />`;
  return html`<${Panel} flush><div class="scroll"><table class="cards"><thead><tr><th>client</th><th>what it does to reasoning</th><th>last seen</th></tr></thead>
    <tbody>${clients.map((one) => html`<tr><td class="tight"><a data-row href=${address("/connect", { client: one.name })}>${one.title}</a></td>
      <td class="soft"><span><${Words} text=${one.habit} /></span></td><td data-label="last seen" class="tight"><${Ago} at=${one.lastSeen} /></td></tr>`)}</tbody></table></div><//>`;
}
