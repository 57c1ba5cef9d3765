// What views are made of: words with a colour, times, figures, buttons, and what stands where nothing is.

import { html, useEffect, useState } from "./preact.js";
import { ask } from "./api.js";

export { html };

export const COUNTED = ["restored", "inherited", "blank", "stripped", "missing", "healed", "checkpoints"];

export function View({ title, about, json, wide, children }) {
  useEffect(() => { document.title = `${title} · thoughtline`; }, [title]);
  return html`<div class=${wide ? "view wide" : "view"}>
    <div class="head"><h1>${title}</h1>${about && html`<p>${about}</p>`}${json && html`<${Json} path=${json} />`}</div>
    ${children}
  </div>`;
}

export const Json = ({ path }) => html`<a class="json" href=${path} target="_blank" data-raw>JSON</a>`;

export function Panel({ title, side, children, flush }) {
  return html`<section class="panel">
    ${title && html`<header><h2>${title}</h2>${side}</header>`}
    ${flush ? children : html`<div class="body">${children}</div>`}
  </section>`;
}

export const Tag = ({ kind, children }) => html`<span class=${`tag ${kind}`}>${children ?? kind}</span>`;

// What was done for a request or a turn, in the order that the header has; nothing where nothing was.
export function Counts({ of, also = [] }) {
  const found = [...also, ...COUNTED].filter((name) => of[name] > 0);
  return found.length > 0 && html`<span class="tags">${found.map((name) => html`<${Tag} kind=${name}>${name} ${of[name]}<//>`)}</span>`;
}

// Words with `code` in them, as texts for terminals have it.
export const Words = ({ text }) => text.split("`").map((part, index) => (index % 2 ? html`<code>${part}</code>` : part));

// Why a turn was dealt with so; what was done, its colour says.
export const wordsOf = (turn) => turn.words.replace(/^[^:]*: /, "");

export function Trouble({ problem, children }) {
  if (!problem) return null;
  return html`<div class="problem" role="alert">
    <strong><${Words} text=${`${problem.message}`} /></strong>${problem.remedy && html` <span><${Words} text=${`${problem.remedy}`} /></span>`}${children}
  </div>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><strong>${title}</strong>${children}</div>`;
}

// The usual three: it went wrong, it is not there yet, it is there.
export function Loaded({ from, children }) {
  return html`<${Trouble} problem=${from.problem} />
    ${from.data ? children(from.data) : from.problem ? null : html`<p class="waiting">Loading…</p>`}`;
}

export function Figures({ of }) {
  return html`<dl class="figures">${of.filter(Boolean).map(
    ([name, value, note]) => html`<div><dt>${name}</dt><dd>${value}${note && html`<small>${note}</small>`}</dd></div>`,
  )}</dl>`;
}

export function Facts({ of }) {
  const told = of.filter((row) => row && row[1] !== null && row[1] !== undefined && row[1] !== "");
  return html`<dl class="facts">${told.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

export function Copy({ text, children = "Copy", plain }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button type="button" class=${plain ? "plain" : ""} onClick=${copy}>${isDone ? "Copied" : children}</button>`;
}

// Without TLS, browsers have a clipboard for pages of the same machine alone: then the old way.
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "hidden";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  return undefined;
}

// What can't be undone is asked for twice.
export function Twice({ onClick, children, sure = "Really?", disabled, title }) {
  const [isArmed, arm] = useState(false);
  useEffect(() => {
    if (!isArmed) return undefined;
    const timer = setTimeout(() => arm(false), 4000);
    return () => clearTimeout(timer);
  }, [isArmed]);
  const press = (event) => {
    event.preventDefault();
    if (isArmed) onClick();
    arm(!isArmed);
  };
  return html`<button type="button" class=${isArmed ? "danger armed" : "danger"} disabled=${disabled} title=${title}
    onClick=${press}>${isArmed ? sure : children}</button>`;
}

// Something to do, and what went wrong with it.
export function useDoing() {
  const [state, setState] = useState({ isBusy: false, problem: null });
  const run = async (work) => {
    setState({ isBusy: true, problem: null });
    try {
      const result = await work();
      setState({ isBusy: false, problem: null });
      return result;
    } catch (problem) {
      setState({ isBusy: false, problem });
      return undefined;
    }
  };
  return { ...state, run, ask: (path, options) => run(() => ask(path, options)) };
}

export function useNow(seconds = 10) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return now;
}

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function span(seconds) {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? UNITS[3];
  return `${Math.floor(Math.max(0, seconds) / size)} ${unit}`;
}

export function Ago({ at }) {
  const now = useNow();
  if (!at) return html`<span class="faint">never</span>`;
  const seconds = (now - Date.parse(at)) / 1000;
  return html`<time dateTime=${at} title=${new Date(at).toLocaleString()}>${seconds < 5 ? "now" : `${span(seconds)} ago`}</time>`;
}

export function Until({ at }) {
  const seconds = (Date.parse(at) - useNow()) / 1000;
  return html`<time dateTime=${at} title=${new Date(at).toLocaleString()}>${seconds < 1 ? "a moment" : span(seconds)}</time>`;
}

export const clock = (at) => new Date(at).toLocaleTimeString([], { hour12: false });

export function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 ms";
  if (value >= 10000) return `${(value / 1000).toFixed(1)} s`;
  return value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

export function bytes(value) {
  if (value >= 2 ** 20) return `${(value / 2 ** 20).toFixed(1)} MiB`;
  return value >= 2 ** 10 ? `${(value / 2 ** 10).toFixed(1)} KiB` : `${value} B`;
}

export const count = (value) => value.toLocaleString("en-US");
export const many = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
export const short = (id) => id.slice(0, 8);
