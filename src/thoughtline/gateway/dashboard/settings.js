// What can change while it runs: continuity, tags, and the gateway's own client keys.

import { html, useState } from "./preact.js";
import { address, useData } from "./api.js";
import { Continuity, Origin } from "./continuity.js";
import { Ago, Copy, Empty, Facts, Loaded, Panel, span, Tag, Trouble, Twice, Until, useDoing, View, Words } from "./parts.js";

export function Settings() {
  const from = useData("/api/settings");
  const doing = useDoing();
  const [saved, setSaved] = useState("");
  const set = async (table, name, value) => {
    if (value !== null) from.put({ ...from.data, [table]: { ...from.data[table], [name]: value } });
    const answer = await doing.ask("/api/settings", { method: "PATCH", json: { [table]: { [name]: value } } });
    setSaved(answer ? `${table}.${name}` : "");
    if (answer) from.put(answer);
    else from.reload();
  };
  return html`<${View} title="Settings" about="Changes made here reach every worker and replica within seconds." json="/api/settings">
    <${Trouble} problem=${doing.problem} />
    <${Loaded} from=${from}>${(data) => html`<div class="columns">
      <${Continuity} data=${data} set=${set} saved=${saved} />
      <${Tags} data=${data} set=${set} saved=${saved} />
    </div>
    <${Keys} />
    <${InForce} data=${data} />`}<//>
  <//>`;
}

const TAG_WORDS = { off: "leave them as they are", markers: "take out the markers", lift: "lift the text into the reasoning field" };

function Tags({ data, set, saved }) {
  return html`<${Panel} title="Thinking tags" side=${html`<${Tag}>${data.tags.mode}<//>`}>
    <p class="soft"><code>${"<think>"}</code> and its like in the visible text of answers. Code that merely mentions a tag is left alone.</p>
    <div class="bar"><label>what to do<select name="tags" value=${data.tags.mode} onChange=${(event) => set("tags", "mode", event.target.value)}>
      ${Object.entries(TAG_WORDS).map(([word, words]) => html`<option value=${word} selected=${word === data.tags.mode}>${word}: ${words}</option>`)}</select></label>
      <span class="push"><${Origin} name="tags.mode" data=${data} set=${set} saved=${saved} /></span></div>
  <//>`;
}

function Keys() {
  const from = useData("/api/keys", { seconds: 10 });
  const doing = useDoing();
  const [made, setMade] = useState(null);
  const add = async (body) => {
    const answer = await doing.ask("/api/keys", { method: "POST", json: body });
    if (answer) setMade(answer);
    from.reload();
    return Boolean(answer);
  };
  const revoke = async (id) => {
    await doing.ask(address("/api/keys", { id }), { method: "DELETE" });
    setMade(null);
    from.reload();
  };
  return html`<${Panel} title="Client keys" flush side=${html`<a class="json push" href="/api/keys" target="_blank" data-raw>JSON</a>`}>
    <${Loaded} from=${from}>${(data) => html`
      <div class="body">
        ${data.note && html`<p class="soft"><${Words} text=${data.note} /></p>`}
        ${data.canChange && html`<${NewKey} add=${add} isBusy=${doing.isBusy} />`}
        <${Trouble} problem=${doing.problem} />
        ${made && html`<div class="good-news secret" role="status"><span>The key of <b>${made.key.name}</b>, shown once:</span> <code>${made.secret}</code> <${Copy} text=${made.secret} /> <span class="soft"><${Words} text=${made.note} /></span></div>`}
      </div>
      ${data.keys.length === 0
        ? html`<${Empty} title="No client keys"><p>${!data.canChange && html`Keys are kept in a durable store: name one as <code>url</code> under <code>[store]</code> in the settings. `}Callers use their own provider keys. Add a client key to keep provider keys on the gateway; after the first, every caller needs one.</p><//>`
        : html`<div class="scroll"><table class="cards"><thead><tr><th>name</th><th>id</th><th>state</th><th>last used</th><th>created</th><th>expires in</th><th>limits</th><td></td></tr></thead>
          <tbody>${data.keys.map((key) => html`<${Key} key=${key.id} one=${key} revoke=${revoke} canChange=${data.canChange} />`)}</tbody></table></div>`}`}<//>
  <//>`;
}

function NewKey({ add, isBusy }) {
  const [name, setName] = useState("");
  const [rate, setRate] = useState("");
  const [expires, setExpires] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    const isAdded = await add({ name: name.trim(), requestsPerMinute: rate ? Number(rate) : null, expires: expires || null });
    if (isAdded) setName("");
  };
  return html`<form class="bar bottom" onSubmit=${submit}>
    <label>Name<input name="name" required maxlength="100" placeholder="who will use it" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
    <label>Requests a minute<input name="rate" type="number" min="1" placeholder="no limit" value=${rate} onInput=${(event) => setRate(event.target.value)} /></label>
    <label>Valid for<select name="expires" value=${expires} onChange=${(event) => setExpires(event.target.value)}>
      <option value="">until it is revoked</option><option value="1d">a day</option><option value="30d">30 days</option><option value="365d">a year</option></select></label>
    <button class="primary" disabled=${isBusy || !name.trim()}>Add key</button>
  </form>`;
}

function Key({ one, revoke, canChange }) {
  const limits = [one.requestsPerMinute && `${one.requestsPerMinute} a minute`, one.concurrentStreams && `${one.concurrentStreams} streams`, one.plainContent && "plain content", one.replay && `replay ${one.replay}`];
  return html`<tr><td><b>${one.name}</b></td><td data-label="id"><code>${one.id}</code></td><td data-label="state"><${Tag} kind=${one.state} /></td>
    <td data-label="last used" class="tight"><${Ago} at=${one.lastUsed} /></td><td data-label="created" class="tight"><${Ago} at=${one.createdAt} /></td>
    <td data-label="expires in" class="tight">${one.expiresAt ? html`<${Until} at=${one.expiresAt} />` : html`<span class="faint">never</span>`}</td>
    <td data-label="limits" class="soft">${limits.filter(Boolean).join(", ") || "none"}</td>
    <td class="right">${one.state !== "revoked" && canChange && html`<${Twice} onClick=${() => revoke(one.id)} sure="Revoke it?">Revoke<//>`}</td></tr>`;
}

function InForce({ data }) {
  const configured = Object.entries(data.providers).filter(([, row]) => row.isConfigured).map(([name]) => name);
  return html`<${Panel} title="In force" side=${html`<span class="faint">from file, environment and flags; they change with a restart or reload</span>`}>
    <${Facts} of=${[
      ["address", `${data.server.host}:${data.server.port}`],
      ["store", html`<code>${data.store.url}</code>`],
      ["kept for", span(data.store.ttlSeconds)],
      ["providers set", configured.join(", ") || "none: all built-in ones, with the callers' keys"],
      ["default provider", data.defaultProvider],
      ["routes", Object.keys(data.routes).join(", ")],
      ["contracts set", data.contracts.join(", ")],
      ["replay", data.replay.mode],
      ["on a miss", data.replay.miss],
    ]} /><//>`;
}
