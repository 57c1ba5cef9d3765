// A conversation in any format, message by message: what the client sent beside what went up.

import { html } from "./preact.js";
import { Tag, wordsOf } from "./parts.js";

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
  const isSame = left.length === right.length;
  const isChanged = (index) => !isSame || JSON.stringify(left[index]) !== JSON.stringify(right[index]);
  const rows = Array.from({ length: Math.max(left.length, right.length) }, (_, index) => index);
  return html`<div class="beside">
    <div class="side-head">the client sent</div><div class="side-head">went up</div>
    ${rows.map((index) => html`
      <${Message} message=${left[index]} at=${index} side="sent" />
      <${Message} message=${right[index]} at=${index} side="went up" turn=${turns.get(index)} kind=${isChanged(index) ? "changed" : "same"} />`)}
  </div>
  ${isCut && html`<p class="notice">One of the bodies is longer than the limit; its end is not shown.</p>`}`;
}

const Plain = ({ text }) => html`<div class="cell"><pre>${text ?? "not known"}</pre></div>`;

function Message({ message, at, side, turn, kind = "" }) {
  if (message === undefined) return html`<div class="cell faint">–</div>`;
  return html`<div class=${`cell ${kind}`}>
    <div class="bar"><span class="faint">${at}<span class="only-phone"> ${side}</span></span> <b>${message.role ?? message.type ?? "message"}</b>
      ${turn && html`<${Tag} kind=${turn.treatment} /><span class="soft">${wordsOf(turn)}</span>`}</div>
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
