// Where we are: every view is an address, and its filters are the query.

const listeners = new Set();

// A part with a stray percent sign is taken as it is written.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function current() {
  const parts = location.pathname.split("/").filter(Boolean).map(decoded);
  return { parts, query: Object.fromEntries(new URLSearchParams(location.search)) };
}

export function onMove(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const tell = () => listeners.forEach((listener) => listener());
addEventListener("popstate", tell);

export function go(href, { isReplacing = false } = {}) {
  if (href === location.pathname + location.search) return;
  history[isReplacing ? "replaceState" : "pushState"](null, "", href);
  tell();
}

export const requestPlace = (id) => `/requests/${encodeURIComponent(id)}`;

export function sessionPlace(id, tenant) {
  const whose = tenant ? `?${new URLSearchParams({ tenant })}` : "";
  return `/sessions/${encodeURIComponent(id)}${whose}`;
}
