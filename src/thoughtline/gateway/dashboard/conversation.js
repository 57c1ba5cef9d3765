// A conversation in any format, message by message: what the client sent beside what went up.

import { html } from "./preact.js";
import { aligned, changes } from "./difference.js";
import { count, many, Tag, wordsOf } from "./parts.js";

const LISTS = ["messages", "input", "contents"];

function messagesOf(text) {
  try {
    const body = JSON.parse(text);
    const name = LISTS.find((one) => Array.isArray(body[one]));
    return name ? body[name] : null;
  } catch {
    return null;
  }
}

export function Beside({ request }) {
  const { client, upstream, isCut } = request.bodies;
  const [left, right] = [messagesOf(client ?? ""), messagesOf(upstream ?? client ?? "")];
  if (!left || !right) return html`<div class="beside"><${Plain} text=${client} /><${Plain} text=${upstream} /></div>`;
  const turns = new Map(request.turns.map((turn) => [turn.at, turn]));
  const rows = aligned(left, right).map(([at, to]) => ({ at, to, what: JSON.stringify(left[at]) === JSON.stringify(right[to]) ? [] : changes(left[at], right[to]) }));
  const same = rows.filter((row) => row.what.length === 0).length;
  return html`<p class="differs">${many(rows.length - same, "message")} changed, ${count(same)} as the client sent ${same === 1 ? "it" : "them"}.</p>
  <div class="beside">
    <div class="side-head">the client sent</div><div class="side-head">went up</div>
    ${rows.map(({ at, to, what }) => html`
      <${Message} message=${left[at]} at=${at} side="sent" />
      <${Message} message=${right[to]} at=${to} side="went up" turn=${turns.get(to)} kind=${what.length ? "changed" : "same"} what=${what} />`)}
  </div>
  ${isCut && html`<p class="notice">One of the bodies is longer than the limit; its end is not shown.</p>`}`;
}

const Plain = ({ text }) => html`<div class="cell"><pre>${text ?? "not known"}</pre></div>`;

// What was put in and taken out, where the bodies are not kept: by what is known of each turn.
export function Differences({ request, chars }) {
  const changed = request.turns.filter((turn) => turn.treatment !== "kept");
  if (changed.length === 0) return html`<p class="faint">No message was changed for its reasoning.</p>`;
  return html`<ul class="differences">${changed.map((turn) => html`<li><code>${turn.place}</code> <${Tag} kind=${turn.treatment} />
    <span>${wordsFor(turn, chars.get(turn.record))}</span></li>`)}</ul>
    ${request.checkpoints > 0 && html`<p>${many(request.checkpoints, "checkpoint")} quoted into the system prompt.</p>`}`;
}

function wordsFor(turn, chars) {
  switch (turn.treatment) {
    case "restored":
    case "inherited":
      return chars === undefined ? "reasoning added" : `${many(chars, "character")} of reasoning added`;
    case "blank":
      return "the least that the provider accepts added";
    case "stripped":
      return "reasoning taken out";
    default:
      return "nothing added: its reasoning was not found";
  }
}

function Message({ message, at, side, turn, kind = "", what = [] }) {
  if (message === undefined) return html`<div class="cell faint">–</div>`;
  return html`<div class=${`cell ${kind}`}>
    <div class="bar"><span class="faint">${at}<span class="only-phone"> ${side}</span></span> <b>${message.role ?? message.type ?? "message"}</b>
      ${turn && html`<${Tag} kind=${turn.treatment} /><span class="soft">${wordsOf(turn)}</span>`}</div>
    ${what.map((words) => html`<p class="delta">${words}</p>`)}
    ${pieces(message).map(([kind, text]) => html`<div class=${`piece ${kind}`}><pre>${text}</pre></div>`)}
  </div>`;
}

// Thoughts, words and calls of a message, each with its kind; what has no known shape is shown as it is.
function pieces(message) {
  const found = [];
  const { role, content, parts, tool_calls: calls, ...rest } = message;
  for (const [name, value] of Object.entries(rest)) {
    const isThought = /reason|think|summary|encrypted|signature/i.test(name);
    found.push([isThought ? "thought" : "rest", `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`]);
  }
  const list = content ?? parts ?? [];
  if (typeof list === "string") found.push(["text", list]);
  else if (Array.isArray(list)) list.forEach((block) => found.push(blockOf(block)));
  for (const call of calls ?? []) found.push(["call", `${call.function?.name ?? call.type}(${call.function?.arguments ?? ""})  ${call.id ?? ""}`]);
  return found;
}

function blockOf(block) {
  const kind = String(block.type ?? "");
  const isThought = /thinking|reason/.test(kind) || block.thought === true;
  const words = block.thinking ?? block.text;
  if (typeof words === "string" && !block.signature) return [isThought ? "thought" : "text", words];
  return [isThought ? "thought" : "call", JSON.stringify(block, null, 2)];
}
