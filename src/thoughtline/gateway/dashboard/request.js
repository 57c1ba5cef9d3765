// One request under the rays: what happened and why, who was asked, what was done about each turn.

import { html, useEffect } from "./preact.js";
import { address, useData } from "./api.js";
import { Beside, Differences } from "./conversation.js";
import { requestPlace, sessionPlace } from "./places.js";
import { bytes, clock, Copy, count, Counts, Empty, Facts, Json, Loaded, many, ms, Panel, short, Tag, Words, wordsOf } from "./parts.js";
import { Attempts, Waterfall } from "./waterfall.js";

export function Request({ id }) {
  useEffect(() => { document.title = `Request ${short(id)} · thoughtline`; }, [id]);
  return html`<${RequestDetail} id=${id} back="/live" isWhole />`;
}

export function RequestDetail({ id, version = "", back, isWhole }) {
  const path = `/api/requests/${encodeURIComponent(id)}`;
  const from = useData(path);
  const isOver = from.data?.phase === "done";
  useEffect(() => { if (version) from.reload(); }, [version]);
  useEffect(() => {
    if (isOver || !from.data) return undefined;
    const timer = setInterval(from.reload, 1000);
    return () => clearInterval(timer);
  }, [isOver, Boolean(from.data)]);
  return html`<div class=${isWhole ? "view" : "view wide"}>
    <div class="head">
      <a data-back href=${back}>← Live</a>
      <h1 class="mono">${short(id)}</h1>
      ${from.data && html`<${Tag} kind=${from.data.outcome} />`}
      <${Json} path=${path} />
    </div>
    <${Loaded} from=${from}>${(request) => html`<${Explained} request=${request} isWhole=${isWhole} />`}<//>
  </div>`;
}

function Explained({ request, isWhole }) {
  const refusal = request.tried.flatMap((attempt) => attempt.refusals.map((one) => ({ ...one, by: attempt.provider }))).at(-1);
  return html`
    <p class="cause">${request.verdict ? html`<${Verdict} text=${request.verdict} />` : request.summary.replace(/; remedy: [^;)]*/, "")}</p>
    ${refusal && html`<${Said} refusal=${refusal} />`}
    <div class="bar">
      ${!isWhole && html`<a class="button" href=${requestPlace(request.id)}>Open on a page</a>`}
      <${Copy} text=${curl(request)}>Copy as curl<//>
      <a class="button" href=${address("/audit", { request: request.id })}>Audit this</a>
      <${Counts} of=${request} also=${["kept"]} />
    </div>
    <${Panel} title="Where the time went" side=${html`<span class="faint">${ms(request.totalMs)} in all</span>`}><${Waterfall} request=${request} /><${Attempts} tried=${request.tried} /><//>
    <${Panel} title="Timeline" flush><div class="body"><${Timeline} request=${request} /></div><//>
    <${Panel} title="Model turns" flush side=${html`<span class="faint">what was done about the reasoning of each</span>`}>
      <${Turns} request=${request} />
    <//>
    <${Conversation} request=${request} />
    <${Panel} title="Details"><${Facts} of=${facts(request)} /><//>`;
}

// Whose a failure is, why, and what helps.
function Verdict({ text }) {
  const [whose, rest] = [text.slice(0, text.indexOf(":")), text.slice(text.indexOf(":") + 2)];
  return html`<${Tag} kind="failed">${WHOSE[whose] ?? whose}<//> <${Words} text=${rest} />`;
}

const WHOSE = { client: "your client", provider: "the provider", gateway: "the gateway", network: "the network" };

// The provider's own words, and what they mean here.
function Said({ refusal }) {
  const [meaning, helps] = refusal.meaning.split("; remedy: ");
  return html`<div class="said">
    <p class="soft">${refusal.by} answered ${refusal.status}${refusal.wasHealed ? ", then took the corrected request" : ""}:</p>
    <pre>${refusal.words}</pre>
    ${meaning && html`<p><b>It means:</b> <${Words} text=${meaning} />${refusal.place && html`, at <code>${refusal.place}</code>`}.</p>`}
    ${helps && html`<p><b>What helps:</b> <${Words} text=${helps} />.</p>`}
  </div>`;
}

function facts(request) {
  const { tokens } = request;
  return [
    ["request", html`<code>${request.id}</code> <${Copy} plain text=${request.id} />`],
    ["at", `${new Date(request.at).toLocaleString()}`],
    ["asked", html`<code>${request.method} ${request.path}</code>`],
    ["client", request.client],
    ["session", request.session && html`<a href=${sessionPlace(request.session, request.tenant)}>${request.session}</a>`],
    ["agent", request.agent],
    ["caller", request.caller],
    ["tenant", html`<code>${request.tenant}</code>`],
    request.mode !== "on" && ["replay", request.mode === "off" ? "off" : `only observed; would have been ${request.would || "unchanged"}`],
    ["route", request.route],
    ["error", request.code && html`<code>${request.code}</code>`],
    ["time", `${ms(request.totalMs)} in all, ${ms(request.ownMs)} here, ${ms(request.upstreamMs)} upstream, first byte after ${ms(request.firstByteMs)}`],
    ["bytes", `${bytes(request.bytesUp)} up, ${bytes(request.bytesDown)} down`],
    tokens && ["tokens", `${count(tokens.input)} in (${count(tokens.cached)} cached), ${count(tokens.output)} out (${count(tokens.reasoning)} reasoning)`],
    ["remembered", request.captured ? many(request.captured, "turn") : "nothing"],
    ["store", request.store],
    request.findings.length > 0 && ["findings", request.findings.map((one) => html`<div><b>${one.rule}</b> <code>${one.place}</code></div>`)],
  ];
}

function Timeline({ request }) {
  return html`<ol class="timeline">
    <${Moment} at=${0} words=${html`<span>${clock(request.at)}: ${request.client || "a client"} asks for <b>${request.model || request.path}</b>
      ${request.isStreaming ? " as a stream" : ""}${request.format && ` in ${request.format}`}</span>`} />
    ${request.tried.map((attempt) => html`<${Attempt} attempt=${attempt} />`)}
    ${request.firstByteMs !== null && html`<${Moment} at=${request.firstByteMs} words="the first byte of the answer goes to the client" />`}
    ${request.phase === "done"
      ? html`<${Moment} at=${request.totalMs} kind=${request.status < 400 ? "good" : "bad"} words=${html`<span>over: <b>${request.status || "no answer"}</b></span>`} />`
      : html`<${Moment} at=${request.totalMs} kind="beating" words=${request.phase === "streaming" ? "streaming…" : "waiting for the answer…"} />`}
  </ol>`;
}

function Attempt({ attempt }) {
  const { contract } = attempt;
  return html`<${Moment} at=${attempt.startedMs} kind=${attempt.error ? "bad" : ""} words=${html`
      <span>asks <b>${attempt.provider}</b> for ${attempt.model}${attempt.isTranslated ? `, translated to ${attempt.format}` : ""}
        <span class="faint"> ${attempt.endpoint}</span></span>
      ${contract && html`<${ContractUsed} contract=${contract} />`}
      ${attempt.error && html`<span class="problem">${attempt.error}</span>`}`} />
    ${attempt.refusals.map((one) => html`<${Moment} at=${one.atMs} kind="bad" words=${html`
      <span><b>${attempt.provider} answers ${one.status}</b>${one.rule && html` about <b>${one.rule}</b> reasoning`}</span>
      <details><summary>its words</summary><pre class="soft">${one.words}</pre></details>
      ${one.wasHealed ? html`<span><${Tag} kind="healed" /> corrected and sent again, before a byte went to the client</span>` : null}`} />`)}`;
}

function ContractUsed({ contract }) {
  return html`<details><summary>by the contract ${contract.name}${contract.learned.length ? ", corrected by refusals" : ""}</summary>
    <${Facts} of=${[
      ["kind", contract.kind],
      ["scope", contract.scope.replaceAll("_", " ")],
      ["takes", contract.takes],
      ["carrier", html`<code>${contract.carrier}</code>`],
      ["source", contract.source],
      contract.isOverridden && ["settings", "change it"],
      ...contract.learned.map((one) => ["learned", one]),
    ]} />
  </details>`;
}

const Moment = ({ at, kind = "", words }) => html`<li><time>${ms(at)}</time><span class=${`dot ${kind}`}></span><div class="what">${words}</div></li>`;

function Turns({ request }) {
  if (request.turns.length === 0 && request.verdict.includes("changed nothing")) {
    return html`<${Empty} title="Nothing was changed"><p>You would have got this response without thoughtline.</p><//>`;
  }
  if (request.turns.length === 0) {
    return html`<${Empty} title="No turn needed a change"><p>No earlier turn of this request has reasoning or needs it.</p><//>`;
  }
  return html`<ol class="turns">${request.turns.map(
    (turn) => html`<li class="turn"><i class=${turn.treatment}></i><div>
      <div class="first"><${Tag} kind=${turn.treatment} /><code>${turn.place}</code>
        ${turn.record && html`<a class="push" href=${recordPlace(request, turn)}>stored turn</a>`}</div>
      <p class="soft">${wordsOf(turn)}</p>
    </div></li>`,
  )}</ol>`;
}

const recordPlace = (request, turn) => address("/memory", { session: request.session, tenant: request.tenant, entry: turn.record });

function Conversation({ request }) {
  const known = useData(request.bodies === null && request.turns.some((turn) => turn.record) ? address(`/api/sessions/${encodeURIComponent(request.session)}`, { tenant: request.tenant }) : "");
  if (request.bodies === null && request.tried.every((attempt) => attempt.sends === 0)) {
    return html`<p class="faint">This request did not go to a provider, so there are no bodies to compare.</p>`;
  }
  if (request.bodies === null) {
    const chars = new Map((known.data?.turns ?? []).map((turn) => [turn.id, turn.charCount]));
    return html`<${Panel} title="What was changed, by message"><${Differences} request=${request} chars=${chars} />
      <p class="faint">Bodies are not kept. With <code>keep_bodies = true</code> under <code>[debug]</code> in the settings, those of the last
      requests stand here, as the client sent them and as they went up.</p><//>`;
  }
  return html`<${Panel} title="The conversation, as the client sent it and as it went up" flush><${Beside} request=${request} /><//>`;
}

// The client's request for another try. No credential is in it: the shell has that.
export function curl(request) {
  const body = request.bodies?.client;
  const lines = [
    `curl -X ${quoted(request.method)} ${quoted(location.origin + request.path)}`,
    '-H "authorization: Bearer $API_KEY"',
    request.method !== "GET" && "-H 'content-type: application/json'",
    request.method !== "GET" && `--data-binary ${body ? quoted(body) : "@request.json"}`,
  ];
  return lines.filter(Boolean).join(" \\\n  ");
}

// Nothing in it means anything to a shell: others wrote it, and it is pasted into one.
const quoted = (text) => (/^[\w:/.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
