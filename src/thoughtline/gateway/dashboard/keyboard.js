// The keys: j and k walk a list, Enter opens, / goes to the filter, Esc leaves, digits change the view, ? says so.

import { html, useEffect, useRef } from "./preact.js";
import { go } from "./places.js";

const isTyping = (element) => element.closest("input, textarea, select, [contenteditable]") !== null;

// Moves, and says what the shell has to do: "help", "leave" or nothing.
export function moveFocus(event, views) {
  if (event.metaKey || event.ctrlKey || event.altKey) return "";
  if (event.key === "Escape") return leave(event);
  if (isTyping(event.target)) return "";
  if (event.key === "?") return "help";
  if (event.key === "/") {
    event.preventDefault();
    document.querySelector("[data-filter]")?.focus();
  } else if (event.key === "j" || event.key === "k") {
    walk(event.key === "j" ? 1 : -1);
  } else if (/^[0-9]$/.test(event.key) && views[(Number(event.key) || 10) - 1]) {
    go(`/${views[(Number(event.key) || 10) - 1][0]}`);
  }
  return "";
}

function leave(event) {
  if (isTyping(event.target)) event.target.blur();
  else document.querySelector("[data-back]")?.click();
  return "leave";
}

function walk(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const here = rows.indexOf(document.activeElement);
  const chosen = here >= 0 ? here : rows.findIndex((row) => row.hasAttribute("aria-current"));
  const next = rows[chosen < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, chosen + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  if (next?.dataset.row === "follow" && matchMedia("(min-width: 961px)").matches) next.click();
}

const KEYS = [
  ["j k", "next, previous"],
  ["Enter", "open"],
  ["/", "go to the filter"],
  ["Esc", "leave the filter; go back"],
  ["?", "show these shortcuts"],
];

export function Help({ views, onClose }) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} onClose=${onClose} onClick=${(event) => event.target === dialog.current && onClose()}>
    <h2>Keyboard shortcuts</h2>
    <dl>
      ${KEYS.map(([key, words]) => html`<dt>${key.split(" ").map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${words}</dd>`)}
      ${views.map(([, title], index) => html`<dt><kbd>${index + 1}</kbd></dt><dd>${title}</dd>`)}
    </dl>
  </dialog>`;
}
