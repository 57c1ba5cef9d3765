// How it goes: the last 24 hours in small plots, the store, routes and their breakers.

import { html, useEffect, useRef, useState } from "./preact.js";
import { useData } from "./api.js";
import { count, Empty, Facts, Loaded, many, ms, Panel, Tag, Trouble, Until, View } from "./parts.js";

const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);

function mean(values, weights) {
  const weight = sum(weights.filter((_, index) => values[index] !== null));
  return weight ? values.reduce((total, value, index) => total + (value ?? 0) * weights[index], 0) / weight : null;
}

const PLOTS = [
  { title: "Requests", name: "requests", ink: "kept" },
  { title: "Reasoning 4xx avoided", name: "avoided" },
  { title: "Turns restored", name: "restored" },
  { title: "Requests healed", name: "healed", ink: "healed" },
  { title: "Turns still missing", name: "missing", ink: "missing" },
  { title: "Refused by providers", name: "refused", ink: "missing" },
  { title: "Errors", name: "errors", ink: "missing" },
  { title: "Own time, average", name: "ownMs", isTime: true },
  { title: "Upstream time, average", name: "upstreamMs", isTime: true, ink: "kept" },
];

export function Health() {
  const series = useData("/api/series", { seconds: 15 });
  return html`<${View} title="Health" about="The last 24 hours. Figures are kept in memory, so they begin at the last start." json="/api/series">
    <${Store} series=${series.data} />
    <${Loaded} from=${series}>${(data) => html`<${Plots} data=${sinceStart(data)} />`}<//>
    <${Routes} />
  <//>`;
}

const Plots = ({ data }) => html`<p class="soft">From ${hour(data.times[0])} to ${hour(data.times.at(-1))}:</p>
  <div class="plots">${PLOTS.map((plot) => html`<${Plot} key=${plot.name} plot=${plot} data=${data} />`)}</div>`;

const LEAST_STEPS = 15;

// Of the day what there is: a gateway that began an hour ago has plots of that hour, not a line at the right edge.
function sinceStart(data) {
  const began = data.times.findIndex((at, index) => data.requests[index] > 0 || at + data.stepSeconds > data.startedAt);
  const first = Math.max(0, Math.min(data.times.length - LEAST_STEPS, began < 0 ? Infinity : began));
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, Array.isArray(value) ? value.slice(first) : value]));
}

function Plot({ plot, data }) {
  const place = useRef(null);
  const drawn = useRef(null);
  const [at, setAt] = useState(null);
  const values = data[plot.name];
  const total = plot.isTime ? ms(mean(values, data.requests)) : count(sum(values));
  const shown = [data.times, values];
  useEffect(() => {
    const draw = () => {
      drawn.current?.destroy();
      drawn.current = new uPlot(options({ plot, step: data.stepSeconds, onHover: setAt }, place.current), shown, place.current);
    };
    draw();
    const sizes = new ResizeObserver(() => drawn.current?.setSize(size(place.current)));
    sizes.observe(place.current);
    addEventListener("theme", draw);
    return () => { sizes.disconnect(); removeEventListener("theme", draw); drawn.current?.destroy(); drawn.current = null; };
  }, []);
  useEffect(() => drawn.current?.setData(shown), [data]);
  return html`<figure class="plot"><figcaption><h2>${plot.title}</h2>${at !== null && html`<span class="faint">${hour(data.times[at])}</span>`}
    <b>${at === null ? total : plot.isTime ? ms(values[at]) : count(values[at])}</b></figcaption><div ref=${place}></div></figure>`;
}

const HEIGHT = 96;
const size = (element) => ({ width: Math.max(120, element.clientWidth), height: HEIGHT });

// A role's colour as it is now: canvases know no custom properties.
function colour(element, role) {
  const probe = document.createElement("span");
  probe.className = `ink ${role}`;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function options({ plot, step, onHover }, element) {
  const stroke = colour(element, plot.ink ?? "");
  const [faint, line] = [colour(element, "faint"), colour(element, "line")];
  const grid = { stroke: line, width: 1 };
  const format = plot.isTime ? ms : (value) => (value >= 10000 ? `${value / 1000}k` : `${value}`);
  return {
    ...size(element),
    legend: { show: false },
    hooks: { setCursor: [(drawing) => onHover(drawing.cursor.idx ?? null)] },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 5 } },
    padding: [8, 4, 0, 0],
    scales: { x: { range: (_, low, high) => [low - step / 2, high + step / 2] }, y: { range: (_, low, high) => [0, Math.max(high ?? 0, plot.isTime ? 0.5 : 4)] } },
    axes: [
      { stroke: faint, grid: { show: false }, ticks: { show: false }, size: 22, space: 70, values: (_, ticks) => ticks.map(hour), font: "11px sans-serif" },
      { stroke: faint, grid, ticks: { show: false }, size: 44, space: 28, values: (_, ticks) => ticks.map(format), incrs: plot.isTime ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000], font: "11px sans-serif" },
    ],
    series: [{}, plot.isTime ? dots(stroke) : bars(stroke)],
  };
}

// Counts are bars. Means are dots: between two of them nothing was measured.
const bars = (fill) => ({ fill, paths: uPlot.paths.bars({ size: [0.9, 8, 1] }), points: { show: false } });
const dots = (fill) => ({ paths: () => null, points: { show: true, size: 3, width: 0, fill, stroke: fill } });

const hour = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });

const STORE_WORDS = { ok: "The store is OK.", slow: "The store is slow: some answers ended before their turn was saved.", degraded: "The durable store is down. Only memory is used." };

function Store({ series }) {
  const ready = useData("/readyz", { seconds: 5 });
  const cache = useData("/api/cache/reasoning?limit=1", { seconds: 15 });
  const state = ready.problem ? undefined : ready.data?.store;
  const bad = series ? series.store.filter((value) => value > 0).length * series.stepSeconds : 0;
  return html`<${Panel} title="Store" side=${state && html`<${Tag} kind=${state === "ok" ? "good" : state}>${state}<//>`}>
    <${Trouble} problem=${ready.problem} />
    ${state && html`<p>${STORE_WORDS[state]} ${ready.data.detail}</p>`}
    ${cache.data && html`<${Facts} of=${[
      ["turns", `${count(cache.data.stats.totalEntries)}, ${count(cache.data.stats.memoryEntries)} of them in memory`],
      ["replay rate", `${cache.data.stats.replayRate} of the turns that needed reasoning`],
      ["outages", bad ? `${many(Math.ceil(bad / 60), "minute")} in the last 24 h` : "none in the last 24 h, or since the start"],
    ]} />`}
  <//>`;
}

function Routes() {
  const from = useData("/api/routes", { seconds: 5 });
  return html`<${Panel} title="Routes and breakers" flush side=${html`<a class="json push" href="/api/routes" target="_blank" data-raw>JSON</a>`}>
    <${Loaded} from=${from}>${({ routes, others }) =>
      routes.length + others.length === 0
        ? html`<${Empty} title="No routes"><p>A route is a model name of your own that fails over from one target to the next: <code>[routes.NAME]</code> in the settings.</p><//>`
        : html`<div class="scroll"><table class="cards"><thead><tr><th>route</th><th>target</th><th>breaker</th><th class="number">failures</th><th>key</th></tr></thead>
          <tbody>${routes.flatMap((route) => route.targets.map((target, index) => html`<${Target} route=${index ? "" : route.name} target=${target} />`))}
            ${others.map((target) => html`<${Target} route="no route" target=${target} />`)}</tbody></table></div>`}<//>
  <//>`;
}

function Target({ route, target }) {
  const words = { closed: "closed: it is asked", open: "open: it is not asked", half_open: "half open: one request tries it" }[target.breaker];
  return html`<tr><td><b>${route}</b></td><td data-label="target">${target.name}</td>
    <td data-label="breaker"><${Tag} kind=${target.breaker}>${words}<//>${target.opensAt && html` <span class="faint">tried again in <${Until} at=${target.opensAt} /></span>`}</td>
    <td data-label="failures" class="number">${target.failures}</td><td data-label="key">${target.hasKey ? "the gateway's, or none needed" : "the caller's own"}</td></tr>`;
}
