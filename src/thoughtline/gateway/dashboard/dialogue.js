// One session as the conversation it was: words, thoughts between them, calls and results folded, and at each turn what
// was put back for it.

import { html, useState } from "./preact.js";
import { address, useData } from "./api.js";
import { go, requestPlace } from "./places.js";
import { Ago, clock, count, Counts, Facts, Loaded, many, ms, short, Tag, Trouble, Twice, useDoing, View, wordsOf } from "./parts.js";
import { titleOf } from "./sessions.js";

const TURNS = 100;
const LONG = 320;

export function Session({ id, place }) {
  const path = address(`/api/sessions/${encodeURIComponent(id)}`, { limit: TURNS, ...place.query });
  const from = useData(path, { seconds: 10 });
  const tenant = from.data?.tenant;
  const requests = useData(tenant ? address("/api/requests", { session: id, tenant, limit: 200 }) : "", { seconds: 10 });
  const rows = new Map((requests.data?.requests ?? []).filter((row) => row.session === id).map((row) => [row.id, row]));
  const newest = [...rows.values()].find((row) => row.phase === "done" && row.action === "generate" && row.provider);
  const last = useData(newest ? `/api/requests/${newest.id}` : "");
  const fates = new Map((last.data?.turns ?? []).filter((turn) => turn.record).map((turn) => [turn.record, turn]));
  const doing = useDoing();
  const forget = async () => {
    if (await doing.ask(address("/api/cache/reasoning", { session: id, tenant }), { method: "DELETE" })) go("/sessions");
  };
  return html`<${View} title=${from.data ? titleOf(from.data) : id} json=${path}>
    <div class="bar"><a data-back href="/sessions">← Sessions</a>
      ${from.data && html`<a href=${address("/live", { q: `session:${id}` })}>its requests</a>
        <span class="push"><${Twice} onClick=${forget} sure="Forget all its turns?">Forget this session<//></span>`}
    </div>
    <${Trouble} problem=${doing.problem} />
    <${Loaded} from=${from}>${(session) => html`
      <${About} session=${session} rows=${rows} />
      ${!session.keepsText && html`<${NotKept} />`}
      ${session.cursor && html`<p><a class="button" href=${address(`/sessions/${encodeURIComponent(id)}`, { ...place.query, cursor: session.cursor })}>Earlier turns</a></p>`}
      <ol class="dialogue">${session.turns.map((turn, index) => html`<${Turn} key=${turn.id} turn=${turn} before=${session.turns[index - 1]}
        row=${rows.get(turn.outcome?.request)} fate=${fates.get(turn.id)} by=${newest} />`)}</ol>`}<//>
  <//>`;
}

function About({ session, rows }) {
  const tokens = [...rows.values()].map((row) => row.tokens).filter(Boolean);
  const sum = (name) => tokens.reduce((total, one) => total + one[name], 0);
  return html`<${Facts} of=${[
    ["session", html`<code>${session.id}</code>`],
    ["client", session.clientTitle],
    ["models", session.models.join(", ")],
    ["tenant", html`<code>${session.tenant}</code>`],
    ["turns", `${count(session.entries)} remembered`],
    ["began", session.startedAt && html`<${Ago} at=${session.startedAt} />`],
    ["last activity", html`<${Ago} at=${session.newestEntry} />`],
    tokens.length > 0 && ["tokens", `${count(sum("input"))} in, ${count(sum("cached"))} of them cached; ${count(sum("output"))} out, ${count(sum("reasoning"))} of them reasoning (last ${many(tokens.length, "request")})`],
  ]} />`;
}

function NotKept() {
  return html`<details class="notice"><summary>Users' words and results of tools are not stored. How to see them here</summary>
    <p>Set <code>keep_text = true</code> under <code>[dashboard]</code> in the settings, then reload or restart the gateway. From then on
      it stores what users write and what tools return, apart from the turns: encrypted if <code>encryption_key</code> is set,
      for <code>keep_text_ttl</code> (7 days), at most <code>keep_text_size</code> of it. Deleting a session or a person deletes their words,
      and switching it off deletes all of them. System prompts are never stored. Whoever holds the admin token can read the words.</p>
  </details>`;
}

function Turn({ turn, before, row, fate, by }) {
  const { outcome } = turn;
  const hasMoved = before && (before.model !== turn.model || before.provider !== turn.provider);
  const calls = before?.says.filter((one) => one.kind === "call") ?? [];
  return html`
    ${turn.before
      ? turn.before.map((one) => html`<${Said} one=${one} calls=${calls} />`)
      : html`<li class="line user unknown"><span class="who">${calls.length ? "results" : "user"}</span><div class="faint">not stored</div></li>`}
    ${hasMoved && html`<li class="mark"><b>${before.provider}/${before.model} → ${turn.provider}/${turn.model}</b></li>`}
    ${outcome?.checkpoints > 0 && html`<li class="mark"><${Tag} kind="checkpoints">${many(outcome.checkpoints, "checkpoint")}<//>
      <span> quoted here, ${count(outcome.addedChars)} characters${outcome.handoff ? ` of what ${outcome.handoff} thought` : ""}</span></li>`}
    <li class="line model" id=${`turn-${turn.id}`}>
      <span class="who">${turn.model}</span>
      <div class="says">
        <div class="bar about"><time class="faint" dateTime=${turn.createdAt} title=${new Date(turn.createdAt).toLocaleString()}>${clock(turn.createdAt)}</time>
          <span class="faint">${turn.provider}</span>
          ${!turn.isComplete && html`<${Tag} kind="missing">cut short<//>`}
          ${turn.agent && html`<${Tag}>agent ${turn.agent}<//>`}
          ${row?.tokens?.cached > 0 && html`<${Tag}>${count(row.tokens.cached)} of ${count(row.tokens.input)} tokens cached<//>`}
          ${outcome && html`<span class="faint">${ms(outcome.upstreamMs)}, ${ms(outcome.ownMs)} here</span>
            <a class="push" href=${requestPlace(outcome.request)}>request ${short(outcome.request)}</a>`}
        </div>
        ${outcome && html`<${PutBack} outcome=${outcome} />`}
        ${turn.says.map((one) => html`<${Says} one=${one} fate=${fate} by=${by} />`)}
        ${turn.says.length === 0 && html`<p class="faint">It said nothing.</p>`}
      </div>
    </li>`;
}

// Which thoughts went up with the request that this turn answers, and how they were recognised: asked for when unfolded.
function PutBack({ outcome }) {
  const [isOpen, open] = useState(false);
  const from = useData(isOpen ? `/api/requests/${encodeURIComponent(outcome.request)}` : "");
  const tags = Counts({ of: outcome });
  if (!tags) return null;
  return html`<details class="put-back" onToggle=${(event) => event.target.open && open(true)}>
    <summary>${tags} <span class="faint">before it was sent</span></summary>
    ${from.problem
      ? html`<p class="faint">The details of this request are no longer kept.</p>`
      : html`<ul>${(from.data?.turns ?? []).map((turn) => html`<li><${Tag} kind=${turn.treatment} /> <span class="soft">${wordsOf(turn)}</span>${" "}
          ${turn.record && html`<a href=${`#turn-${turn.record}`} data-raw>its turn</a>`} <code class="faint">${turn.place}</code></li>`)}</ul>`}
  </details>`;
}

function Says({ one, fate, by }) {
  switch (one.kind) {
    case "thought":
      return html`<div class="thought"><${Folded} text=${one.text} label="Thought" /><${Fate} fate=${fate} by=${by} /></div>`;
    case "sealed":
      return html`<div class="thought"><p class="faint">${one.chars ? `${count(one.chars)} characters of reasoning` : "Reasoning"}, encrypted by the provider</p><${Fate} fate=${fate} by=${by} /></div>`;
    case "call":
      return html`<details class="call"><summary><b>${one.name}</b> <code class="faint">${line(one.text)}</code></summary><pre>${pretty(one.text)}</pre></details>`;
    case "other":
      return html`<p class="faint">[${one.name}]</p>`;
    default:
      return html`<${Text} text=${one.text} />`;
  }
}

// What became of a thought in the newest request of the session.
function Fate({ fate, by }) {
  if (!fate) return null;
  return html`<p class="fate"><${Tag} kind=${fate.treatment} /> <span class="faint">in <a href=${requestPlace(by.id)}>the newest request</a>${wordsOf(fate) && `: ${wordsOf(fate)}`}</span></p>`;
}

function Said({ one, calls }) {
  if (one.kind === "result") {
    const call = calls.find((it) => it.callId === one.callId);
    return html`<li class="line results"><span class="who">result</span><details class="call">
      <summary><b>${one.name || call?.name || "tool"}</b> <code class="faint">${line(one.text)}</code></summary><pre>${one.text}</pre></details></li>`;
  }
  return html`<li class="line user"><span class="who">user</span>${one.kind === "other" ? html`<div class="faint">[${one.name}]</div>` : html`<${Text} text=${one.text} />`}</li>`;
}

function Text({ text }) {
  return text.length > 4 * LONG ? html`<${Folded} text=${text} label="" at=${4 * LONG} />` : html`<div class="text">${text}</div>`;
}

// Long texts begin folded, with their beginning to be seen.
function Folded({ text, label, at = LONG }) {
  const name = label && html`<b class="label">${label}</b> `;
  if (text.length <= at) return html`<div class="text">${name}${text}</div>`;
  return html`<details><summary>${name}${text.slice(0, at / 2).trim()}… <span class="faint">${count(text.length)} characters</span></summary><div class="text">${text}</div></details>`;
}

const line = (text) => (text.length > 90 ? `${text.slice(0, 90)}…` : text).replaceAll("\n", " ");

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
