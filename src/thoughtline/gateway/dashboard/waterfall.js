// Where the time of a request went: a bar for each stage, attempts one below the other.

import { html } from "./preact.js";
import { ms, Tag } from "./parts.js";

const MEANINGS = {
  queue: "read the request, check its key and limits, choose a target",
  "look-up": "find its turns in the store",
  plan: "decide what to put back, and write the body",
  upstream: "wait for the provider's answer to begin",
  "first byte": "wait for the first piece of it",
  answer: "pass the answer on",
  hold: "hold the end of the answer until its turn is saved",
  save: "write the turn to the store, within the hold",
};

// Stages as [name, from, to, detail], in the order of their beginning. What took no time is left out.
export function stagesOf(request) {
  const { tried, firstByteMs, totalMs, endedMs, holdMs, saveMs } = request;
  const stages = [["queue", 0, tried[0]?.preparedMs ?? tried[0]?.startedMs ?? totalMs]];
  let answered = null;
  tried.forEach((attempt, index) => {
    const name = tried.length > 1 ? `${index + 1}. ${attempt.provider}` : "";
    const { preparedMs, lookUpMs, startedMs, upstreamMs } = attempt;
    if (preparedMs !== null && startedMs) {
      const planned = Math.min(startedMs, preparedMs + lookUpMs);
      stages.push(["look-up", preparedMs, planned, name], ["plan", planned, startedMs, name]);
    }
    if (startedMs) {
      answered = Math.min(totalMs, startedMs + upstreamMs);
      stages.push(["upstream", startedMs, answered, attempt.error ? `${name} ${attempt.error}` : `${name} ${attempt.status || ""}`.trim(), attempt.error || attempt.status >= 400 ? "bad" : ""]);
    }
  });
  const held = endedMs !== null && holdMs > 0 ? [endedMs, Math.min(totalMs, endedMs + holdMs)] : null;
  if (answered !== null && firstByteMs !== null) {
    const isWhole = held && held[0] <= firstByteMs;
    stages.push(["first byte", answered, Math.max(answered, isWhole ? held[0] : firstByteMs)]);
    stages.push(["answer", Math.max(answered, firstByteMs), held && !isWhole ? Math.max(firstByteMs, held[0]) : totalMs]);
  }
  if (held) {
    stages.push(["hold", ...held]);
    if (saveMs > 0) stages.push(["save", Math.max(held[0], held[1] - saveMs), held[1]]);
  }
  return stages.filter(([, from, to]) => to - from >= 0.01).sort((one, other) => one[1] - other[1]);
}

export function Waterfall({ request }) {
  const stages = stagesOf(request);
  const whole = Math.max(request.totalMs, ...stages.map(([, , to]) => to), 0.01);
  return html`<table class="waterfall"><caption class="hidden">Where the time went, of ${ms(request.totalMs)} in all</caption>
    <thead class="hidden"><tr><th>stage</th><th>when</th><th>took</th></tr></thead>
    <tbody>${stages.map(([name, from, to, detail, kind = ""]) => html`<tr>
      <th scope="row" title=${MEANINGS[name]}>${name} <span class="faint">${detail}</span></th>
      <td><svg viewBox="0 0 1000 12" preserveAspectRatio="none" role="img" aria-label=${`from ${ms(from)} to ${ms(to)}`}><rect class="rail" width="1000" height="12" rx="2" />
        <rect class=${`bar-${name.replace(" ", "-")} ${kind}`} x=${(from / whole) * 1000} width=${Math.max(3, ((to - from) / whole) * 1000)} height="12" rx="2" /></svg></td>
      <td class="number">${ms(to - from)}</td></tr>`)}</tbody></table>
    <details><summary>What the stages are</summary><dl class="facts">${Object.entries(MEANINGS).map(([name, words]) => html`<dt>${name}</dt><dd>${words}</dd>`)}</dl></details>`;
}

// Several attempts, side by side.
export function Attempts({ tried }) {
  if (tried.length < 2) return null;
  return html`<div class="scroll"><table class="cards"><thead><tr><th>attempt</th><th>model</th><th>status</th><th class="number">began</th><th class="number">prepared in</th><th class="number">answered in</th><th class="number">sent</th></tr></thead>
    <tbody>${tried.map((one, index) => html`<tr><td><b>${index + 1}. ${one.provider}</b></td><td data-label="model">${one.model}</td>
      <td data-label="status">${one.error ? html`<${Tag} kind="failed">no answer<//>` : one.status}</td>
      <td data-label="began" class="number">${ms(one.preparedMs ?? one.startedMs)}</td>
      <td data-label="prepared in" class="number">${one.preparedMs === null || !one.startedMs ? "–" : ms(one.startedMs - one.preparedMs)}</td>
      <td data-label="answered in" class="number">${ms(one.upstreamMs)}</td><td data-label="sent" class="number">${one.sends === 1 ? "once" : `${one.sends} times`}</td></tr>`)}</tbody></table></div>`;
}
