// The admin API as views ask it. What goes wrong is a Problem that names its remedy; without a cookie, views wait.

import { useCallback, useEffect, useState } from "./preact.js";

export class Problem extends Error {
  constructor(status, { code, message, remedy }) {
    super(message);
    Object.assign(this, { status, code, remedy });
  }
}

const listeners = new Set();
export const onLoggedOut = (listener) => listeners.add(listener);

export async function ask(path, options = {}) {
  const { method = "GET", json, text } = options;
  const body = json === undefined ? text : JSON.stringify(json);
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  let response;
  try {
    response = await fetch(path, { method, body, headers, redirect: "manual" });
  } catch {
    throw new Problem(0, {
      code: "unreachable",
      message: "The gateway does not answer.",
      remedy: "Is it running? Start it with `thoughtline serve`; this page reconnects by itself.",
    });
  }
  const answer = await response.json().catch(() => null);
  if (response.status === 401) listeners.forEach((listener) => listener());
  if (!response.ok) throw new Problem(response.status, answer?.error ?? unexpected(response.status));
  return answer;
}

const unexpected = (status) => ({
  code: "unexpected",
  message: `The gateway answered with ${status}.`,
  remedy: "See its log for details.",
});

// Whether the token was right. The cookie comes with the answer.
export async function logIn(token) {
  const body = new URLSearchParams({ token });
  const response = await fetch("/login", { method: "POST", body, redirect: "manual" });
  if (response.type === "opaqueredirect" || response.ok) return;
  const answer = await response.json().catch(() => null);
  throw new Problem(response.status, answer?.error ?? unexpected(response.status));
}

// The cookie goes: this browser has to log in again.
export async function logOut() {
  const response = await fetch("/logout", { method: "POST", redirect: "manual" });
  if (response.type !== "opaqueredirect" && !response.ok) throw new Problem(response.status, unexpected(response.status));
}

export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(given).toString();
  return text ? `${path}?${text}` : path;
}

// What is at an address: asked at once, again by `reload`, and every so often if `seconds` says so. `put` knows better.
export function useData(path, { seconds = 0 } = {}) {
  const [found, setFound] = useState({ path: "", data: null, problem: null });
  const [asked, setAsked] = useState(0);
  const reload = useCallback(() => setAsked((count) => count + 1), []);
  useEffect(() => {
    if (!path) return undefined;
    let isOver = false;
    ask(path).then(
      (data) => isOver || setFound({ path, data, problem: null }),
      (problem) => isOver || setFound((before) => ({ path, data: before.path === path ? before.data : null, problem })),
    );
    return () => { isOver = true; };
  }, [path, asked]);
  useEffect(() => {
    if (!seconds || !path) return undefined;
    const timer = setInterval(() => document.hidden || reload(), seconds * 1000);
    return () => clearInterval(timer);
  }, [path, seconds, reload]);
  const put = (data) => setFound({ path, data, problem: null });
  const isCurrent = found.path === path;
  return { data: isCurrent ? found.data : null, problem: isCurrent ? found.problem : null, reload, put };
}

// Events as they come. The browser connects again by itself; after a refusal we do.
export function listen({ onRequest, onLost, onState }) {
  let source;
  let timer;
  const open = () => {
    source = new EventSource("/api/events");
    source.addEventListener("open", () => onState("good"));
    for (const phase of ["begun", "streaming", "done"]) {
      source.addEventListener(phase, (event) => onRequest(JSON.parse(event.data)));
    }
    source.addEventListener("lost", (event) => onLost(JSON.parse(event.data).count));
    source.addEventListener("error", () => {
      onState("bad");
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, 3000);
    });
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
