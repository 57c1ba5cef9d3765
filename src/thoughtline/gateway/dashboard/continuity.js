// Continuity: whether a model that takes over is told what was thought before it, and what it would be told.

import { html, useState } from "./preact.js";
import { address, useData } from "./api.js";
import { sessionPlace } from "./places.js";
import { count as counted, Loaded, many, Panel, Tag } from "./parts.js";
import { titleOf } from "./sessions.js";

// Whether a setting stands over the file, and the way back.
export function Origin({ name, data, set, saved }) {
  const [table, member] = name.split(".");
  if (!data.shared.includes(name)) return html`<span class="faint">from settings file</span>`;
  return html`<span class="faint">${saved === name ? "saved" : "set here"}</span>
    <button class="plain" onClick=${() => set(table, member, null)}>use the file's</button>`;
}

const SUMMARY_WORDS = {
  agent: "session and agent must be given",
  session: "a session is enough",
};

export function Continuity({ data, set, saved }) {
  const { enabled, count, mode, afterCompaction, afterCompactionBy } = data.continuity;
  const [typed, setTyped] = useState(null);
  const origin = (name) => html`<${Origin} name=${name} data=${data} set=${set} saved=${saved} />`;
  const type = (event) => {
    setTyped(null);
    set("continuity", "count", Number(event.target.value));
  };
  return html`<${Panel} title="Continuity" side=${html`<${Tag} kind=${enabled ? "good" : "kept"}>${enabled ? "on" : "off"}<//>`}>
    <p class="soft">When another model takes over a conversation, it is told what the models before it thought: their newest checkpoints are quoted in its system prompt. A checkpoint is the reasoning of one turn. Models that accept that reasoning natively get it without this.</p>
    <div class="bar"><label class="bar"><input type="checkbox" name="enabled" checked=${enabled} onChange=${(event) => set("continuity", "enabled", event.target.checked)} />
      <span>quote checkpoints to a model that takes over</span></label><span class="push">${origin("continuity.enabled")}</span></div>
    <div class="bar"><label>how many of the newest, 1 to 100<input type="number" name="count" min="1" max="100" value=${typed ?? count}
      onInput=${(event) => setTyped(event.target.value)} onChange=${type} /></label><span class="push">${origin("continuity.count")}</span></div>
    <div class="bar"><label>when<select name="mode" value=${mode} onChange=${(event) => set("continuity", "mode", event.target.value)}>
      <option value="handoff" selected=${mode === "handoff"}>handoff: what native replay can't carry</option><option value="always" selected=${mode === "always"}>always</option></select></label>
      <span class="push">${origin("continuity.mode")}</span></div>
    <p class="soft">A client that sums up its history leaves no turn to go by. ${afterCompaction ? "Its last thoughts are then quoted all the same, by the session and agent that it sends. Claude Code's main line sends no agent: a session is then enough, under the same system prompt." : html`The settings file switches this off (<code>after_compaction</code>).`}</p>
    <div class="bar"><label>after a summary<select name="after_compaction_by" value=${afterCompactionBy} disabled=${!afterCompaction} onChange=${(event) => set("continuity", "after_compaction_by", event.target.value)}>
      ${Object.entries(SUMMARY_WORDS).map(([word, words]) => html`<option value=${word} selected=${word === afterCompactionBy}>${word}: ${words}</option>`)}</select></label>
      <span class="push">${origin("continuity.after_compaction_by")}</span></div>
    <${Preview} count=${Number(typed) || count} mode=${mode} isEnabled=${enabled} />
  <//>`;
}

const LEFT_OUT = {
  own: "the same model made it, and gets it natively",
  native: "this model accepts it natively",
  older: "newer ones are quoted",
  too_long: "it is too long",
  unreadable: "it has no reasoning that can be read",
};

// What would be quoted of a session, by the count and the mode that are shown above, saved or not.
function Preview({ count, mode, isEnabled }) {
  const sessions = useData("/api/sessions?limit=50");
  const providers = useData("/api/providers");
  const [chosen, choose] = useState("");
  const [target, setTarget] = useState("");
  const rows = sessions.data?.sessions ?? [];
  const row = rows.find((one) => `${one.tenant} ${one.id}` === chosen) ?? rows[0];
  if (!sessions.data || !row) return html`<p class="faint">A preview for your own conversations stands here when there are some.</p>`;
  const seen = rows.flatMap((one) => one.models);
  const examples = (providers.data?.providers ?? []).filter((one) => one.exampleModel).map((one) => `${one.name}/${one.exampleModel}`);
  const targets = [...new Set([...seen, ...examples])].sort();
  const aim = target || targets.find((one) => !row.models.includes(one)) || targets[0] || "";
  return html`<div class="preview">
    <h3>What would be quoted?</h3>
    <div class="bar bottom">
      <label>of the session<select name="preview_session" value=${`${row.tenant} ${row.id}`} onChange=${(event) => choose(event.target.value)}>
        ${rows.map((one) => html`<option value=${`${one.tenant} ${one.id}`} selected=${one === row}>${titleOf(one)}</option>`)}</select></label>
      <label>if this model took over<select name="preview_target" value=${aim} onChange=${(event) => setTarget(event.target.value)}>
        ${targets.map((one) => html`<option value=${one} selected=${one === aim}>${one}</option>`)}</select></label>
    </div>
    ${aim && html`<${Quoted} path=${address("/api/continuity/preview", { session: row.id, tenant: row.tenant, target: aim, count: count >= 1 && count <= 100 ? count : 3, mode })} row=${row} isEnabled=${isEnabled} />`}
  </div>`;
}

function Quoted({ path, row, isEnabled }) {
  const from = useData(path);
  return html`<${Loaded} from=${from}>${(found) => html`
    <p role="status">${found.quotes.length === 0
      ? html`Nothing would be quoted to <b>${found.target}</b>.`
      : html`<b>${many(found.quotes.length, "checkpoint")}</b> would be quoted to <b>${found.target}</b>: ${counted(found.addedChars)} characters, about ${many(found.addedTokens, "token")}, with each request.`}
      ${!isEnabled && " Continuity is off: nothing is quoted until you switch it on."}</p>
    ${found.quotes.map((one) => html`<details class="quote"><summary>${one.model}, ${many(one.chars, "character")}</summary><div class="thought-text">${one.text}</div></details>`)}
    ${found.leftOut.length > 0 && html`<p class="faint">Not quoted: ${reasons(found.leftOut).map(([why, number], index) => html`${index > 0 && "; "}${many(number, "turn")}, because ${LEFT_OUT[why]}`)}.</p>`}
    <p class="faint">By the turns that are stored of <a href=${sessionPlace(row.id, row.tenant)}>this session</a>. Turns that the client leaves out of its request are not quoted.</p>`}<//>`;
}

function reasons(leftOut) {
  const numbers = {};
  for (const { why } of leftOut) numbers[why] = (numbers[why] ?? 0) + 1;
  return Object.entries(numbers);
}
