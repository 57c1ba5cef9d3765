// What a provider would refuse in a request: paste or drop a body, read the findings at their lines.

import { html, useEffect, useMemo, useState } from "./preact.js";
import { address, ask, useData } from "./api.js";
import { lineOf, linesOf } from "./pointers.js";
import { Empty, many, Panel, Trouble, useDoing, View, Words } from "./parts.js";

export function Audit({ place }) {
  const [text, setText] = useState("");
  const [who, setWho] = useState({ provider: place.query.provider ?? "", model: place.query.model ?? "" });
  const [findings, setFindings] = useState(null);
  const [note, setNote] = useState("");
  const providers = useData("/api/providers");
  const doing = useDoing();
  const check = async (body, about) => {
    const query = about.provider || about.model ? about : { provider: "" };
    const answer = await doing.ask(address("/api/audit", query), { method: "POST", text: body });
    setFindings(answer?.findings ?? null);
  };
  useEffect(() => {
    if (!place.query.request) return;
    take(place.query.request).then(({ body, about, told }) => {
      setWho(about);
      setNote(told);
      if (body) setText(body);
      if (body) check(body, about);
    }, (problem) => setNote(`${problem.message} ${problem.remedy}`));
  }, [place.query.request]);
  const change = (body) => { setText(body); setFindings(null); };
  const submit = (event) => { event.preventDefault(); check(text, who); };
  return html`<${View} title="Audit" about="What would a provider refuse in this request, where, and how do you fix it?">
    ${note && html`<p class="notice"><${Words} text=${note} /></p>`}
    <form class="bar bottom" onSubmit=${submit}>
      <label>Provider<select name="provider" value=${who.provider} onChange=${(event) => setWho({ ...who, provider: event.target.value })}>
        <option value="">detect from model</option>
        ${providers.data?.providers.map((one) => html`<option value=${one.name} selected=${one.name === who.provider}>${one.name}</option>`)}</select></label>
      <label>Model<input name="model" placeholder="from the request" value=${who.model} onInput=${(event) => setWho({ ...who, model: event.target.value })} /></label>
      <button class="primary" disabled=${!text.trim() || doing.isBusy}>Audit</button>
      ${findings && html`<button type="button" onClick=${() => setFindings(null)}>Edit</button>`}
    </form>
    <${Trouble} problem=${doing.problem} />
    <div class="audit">
      ${findings ? html`<${Source} text=${text} findings=${findings} />` : html`<${Drop} text=${text} onText=${change} />`}
      <${Findings} findings=${findings} text=${text} />
    </div>
  <//>`;
}

// The body of a request that the gateway kept, and whom it was for.
async function take(id) {
  const request = await ask(`/api/requests/${encodeURIComponent(id)}`);
  const about = { provider: request.provider, model: request.model };
  const body = request.bodies?.client;
  if (body) return { body: pretty(body), about, told: "" };
  return { body: "", about, told: "The body of this request was not kept. Paste it here, or set keep_bodies = true under [debug] in the settings and ask again." };
}

function pretty(text) {
  try {
    return text.includes("\n") ? text : JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Drop({ text, onText }) {
  const [isOver, setOver] = useState(false);
  const drop = async (event) => {
    event.preventDefault();
    setOver(false);
    const [file] = event.dataTransfer.files;
    onText(pretty(file ? await file.text() : event.dataTransfer.getData("text")));
  };
  return html`<div class=${isOver ? "drop over" : "drop"} onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    <textarea data-filter spellcheck="false" aria-label="Body of a request" value=${text} onInput=${(event) => onText(event.target.value)}
      placeholder=${'Paste the body of a request, or drop a file here:\n\n{"model": "deepseek-v4-pro", "messages": [ … ], "tools": [ … ]}'}></textarea></div>`;
}

function Source({ text, findings }) {
  const lines = useMemo(() => linesOf(text), [text]);
  const hits = new Set(findings.map((one) => lineOf(lines, one.place)));
  const rows = text.split("\n");
  return html`<${Panel} flush><div class="source" tabindex="0" role="region" aria-label="Body of the request">
    <div class="numbers">${rows.map((_, index) => html`<a id=${`line-${index + 1}`} class=${hits.has(index + 1) ? "hit" : ""}>${index + 1}</a>`)}</div>
    <div class="lines">${rows.map((row, index) => html`<span class=${hits.has(index + 1) ? "hit" : ""}>${row || " "}</span>`)}</div>
  </div><//>`;
}

function Findings({ findings, text }) {
  const lines = useMemo(() => linesOf(text), [text]);
  if (!findings) return html`<${Panel} flush><${Empty} title="No findings yet"><p>Each finding says what the provider would answer, at which line, and how to fix it. The rules are those of <code>thoughtline audit</code>.</p><//><//>`;
  if (findings.length === 0) return html`<p class="good-news" role="status">Nothing would be refused because of its reasoning.</p>`;
  const show = (line) => document.getElementById(`line-${line}`)?.scrollIntoView({ block: "center" });
  return html`<${Panel} title=${many(findings.length, "finding")} flush><ol>${findings.map((one) => {
    const line = lineOf(lines, one.place);
    return html`<li class="turn"><i class="missing"></i><div>
      <div class="first"><b>${one.rule}</b> ${line && html`<button class="plain" onClick=${() => show(line)}>line ${line}</button>`} <code class="faint">${one.place}</code></div>
      <p><${Words} text=${one.message} /></p>
      ${one.answer && html`<pre class="soft">${one.status || ""} ${one.answer}</pre>`}
      <p><b>What helps:</b> <${Words} text=${one.remedy} /></p>
    </div></li>`;
  })}</ol><//>`;
}
