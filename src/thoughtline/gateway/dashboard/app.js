// The shell: which address is which view, the keys, dark and light, and the page to log in at.

import { html, render, useEffect, useErrorBoundary, useState } from "./preact.js";
import { logOut, onLoggedOut, useData } from "./api.js";
import { Audit } from "./audit.js";
import { Connect } from "./connect.js";
import { Contracts } from "./contracts.js";
import { Session } from "./dialogue.js";
import { Health } from "./health.js";
import { Help, moveFocus } from "./keyboard.js";
import { Live } from "./live.js";
import { Login } from "./login.js";
import { Memory } from "./memory.js";
import { Request } from "./request.js";
import { Sessions } from "./sessions.js";
import { Settings } from "./settings.js";
import { current, go, onMove } from "./places.js";
import { Trouble } from "./parts.js";

const VIEWS = [
  ["live", "Live"],
  ["sessions", "Sessions"],
  ["memory", "Memory"],
  ["health", "Health"],
  ["connect", "Connect"],
  ["contracts", "Contracts"],
  ["audit", "Audit"],
  ["settings", "Settings"],
];

function viewOf(place) {
  const [name = "live", id] = place.parts;
  switch (name) {
    case "live":
      return html`<${Live} id=${id} place=${place} />`;
    case "requests":
      return id ? html`<${Request} id=${id} key=${id} />` : html`<${Live} place=${place} />`;
    case "sessions":
      return id ? html`<${Session} id=${id} place=${place} key=${id} />` : html`<${Sessions} />`;
    case "memory":
      return html`<${Memory} place=${place} />`;
    case "health":
      return html`<${Health} />`;
    case "connect":
      return html`<${Connect} place=${place} />`;
    case "contracts":
      return html`<${Contracts} place=${place} />`;
    case "audit":
      return html`<${Audit} place=${place} />`;
    case "settings":
      return html`<${Settings} />`;
    default:
      return html`<${Live} place=${place} />`;
  }
}

function App() {
  const [place, setPlace] = useState(current());
  const [isOut, setOut] = useState("loggedOut" in document.body.dataset);
  const [isHelping, setHelping] = useState(false);
  useEffect(() => onMove(() => setPlace(current())), []);
  useEffect(() => { if (!isOut && place.parts[0] === "login") go("/", { isReplacing: true }); }, [isOut]);
  useEffect(() => onLoggedOut(() => setOut(true)), []);
  useEffect(() => {
    const press = (event) => {
      const action = moveFocus(event, VIEWS);
      if (action === "help") setHelping((before) => !before);
      if (action === "leave") setHelping(false);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const leave = () => logOut().then(() => setOut(true), (problem) => console.warn(problem.message));
  if (isOut) return html`<${Login} place=${place} onDone=${() => setOut(false)} />`;
  return html`<div class="shell">
    <${Side} place=${place} onHelp=${() => setHelping(true)} onLeave=${leave} />
    <main><${Guarded} place=${place} key=${place.parts[0]} /></main>
    ${isHelping && html`<${Help} views=${VIEWS} onClose=${() => setHelping(false)} />`}
  </div>`;
}

// A view that stumbles does not take the others with it.
function Guarded({ place }) {
  const [error, reset] = useErrorBoundary((problem) => console.error(problem));
  if (error) {
    const problem = { message: "This view can't show the gateway's answer.", remedy: `${error}` };
    return html`<div class="view"><${Trouble} problem=${problem} /><p><button onClick=${reset}>Try again</button></p></div>`;
  }
  return viewOf(place);
}

function Side({ place, onHelp, onLeave }) {
  const here = place.parts[0] === "requests" ? "live" : (place.parts[0] ?? "live");
  useEffect(() => { document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); }, [here]);
  return html`<header class="side">
    <a class="brand" href="/live" aria-label="thoughtline"><img src="/assets/favicon.svg" alt="" /><span>thoughtline</span></a>
    <nav aria-label="Views">${VIEWS.map(
      ([name, title], index) => html`<a href=${`/${name}`} aria-current=${here === name ? "page" : undefined}
        >${title}<kbd aria-hidden="true">${index + 1}</kbd></a>`,
    )}</nav>
    <div class="foot">
      <${StoreState} />
      <div class="tools">
        <${Theme} />
        <button class="plain help" title="Keyboard shortcuts" onClick=${onHelp}>Shortcuts <kbd>?</kbd></button>
        <button class="plain" onClick=${onLeave}>Log out</button>
      </div>
    </div>
  </header>`;
}

function StoreState() {
  const ready = useData("/readyz", { seconds: 5 });
  const state = ready.problem ? "bad" : ready.data?.store;
  const kind = { ok: "good", slow: "slow", degraded: "bad", bad: "bad" }[state] ?? "";
  const words = ready.problem ? "Gateway is down" : { ok: "Store OK", slow: "Store is slow", degraded: "Store is down" }[state];
  return html`<a class="state cut soft" href="/health" title=${ready.problem ? ready.problem.message : ready.data?.detail}
    ><span class=${`dot ${kind}`}></span> ${words ?? "…"}</a>`;
}

const THEMES = { auto: "light", light: "dark", dark: "auto" };

function Theme() {
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "auto");
  useEffect(() => show(theme), [theme]);
  const next = () => {
    localStorage.setItem("theme", THEMES[theme]);
    setTheme(THEMES[theme]);
  };
  return html`<button class="plain" title="Dark or light" onClick=${next}>${theme === "auto" ? "Auto" : theme === "light" ? "Light" : "Dark"}</button>`;
}

function show(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event("theme"));
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const isOurs = link && link.origin === location.origin && !link.target && !("raw" in link.dataset);
  if (!isOurs || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  go(link.pathname + link.search);
});

show(localStorage.getItem("theme") ?? "auto");
render(html`<${App} />`, document.body);
