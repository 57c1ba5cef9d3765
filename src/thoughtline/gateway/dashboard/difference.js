// What differs between a conversation as the client sent it and as it went up: message by message, and in each by member.

// Pairs of messages that belong together: what is equal first, then those at the same place between equal ones.
export function aligned(left, right) {
  const [one, other] = [left.map(visible), right.map(visible)];
  const rows = [];
  const common = longestCommon(one, other);
  let [at, to] = [0, 0];
  for (const [here, there] of [...common, [left.length, right.length]]) {
    while (at < here || to < there) {
      rows.push([at < here ? at++ : null, to < there ? to++ : null]);
    }
    if (here < left.length) rows.push([at++, to++]);
  }
  return rows;
}

// A message without its reasoning: by that it is known again.
function visible(message) {
  return JSON.stringify(message, (name, value) => {
    if (REASONING.test(name)) return undefined;
    if (Array.isArray(value)) return value.filter((one) => !(one && typeof one === "object" && (REASONING.test(one.type ?? "") || one.thought === true)));
    return value;
  });
}

const REASONING = /reason|think|signature|encrypted/i;
const MOST_COMPARED = 250_000;

function longestCommon(one, other) {
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let [end, last] = [one.length, other.length];
  while (end > start && last > start && one[end - 1] === other[last - 1]) { end -= 1; last -= 1; }
  const middle = (end - start) * (last - start) > MOST_COMPARED ? [] : between(one.slice(start, end), other.slice(start, last)).map(([a, b]) => [a + start, b + start]);
  const head = Array.from({ length: start }, (_, at) => [at, at]);
  return [...head, ...middle, ...Array.from({ length: one.length - end }, (_, at) => [end + at, last + at])];
}

function between(one, other) {
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let a = one.length - 1; a >= 0; a -= 1) {
    for (let b = other.length - 1; b >= 0; b -= 1) {
      lengths[a][b] = one[a] === other[b] ? lengths[a + 1][b + 1] + 1 : Math.max(lengths[a + 1][b], lengths[a][b + 1]);
    }
  }
  const pairs = [];
  for (let [a, b] = [0, 0]; a < one.length && b < other.length; ) {
    if (one[a] === other[b]) pairs.push([a++, b++]);
    else if (lengths[a + 1][b] >= lengths[a][b + 1]) a += 1;
    else b += 1;
  }
  return pairs;
}

// What was done to one message, as sentences with characters: `36 characters added in reasoning_content`.
export function changes(before, after) {
  if (before === undefined) return [`added, ${size(after)}`];
  if (after === undefined) return [`left out, ${size(before)}`];
  const [one, other] = [new Map(leaves(before)), new Map(leaves(after))];
  const found = [];
  for (const [place, text] of other) {
    if (!one.has(place)) found.push(`${size(text)} added in ${place}`);
    else if (one.get(place) !== text) found.push(`${place} changed: ${size(one.get(place))} before, ${size(text)} now`);
  }
  for (const [place, text] of one) if (!other.has(place)) found.push(`${size(text)} taken out of ${place}`);
  return found;
}

const size = (value) => {
  const length = (typeof value === "string" ? value : JSON.stringify(value)).length;
  return `${length.toLocaleString("en-US")} character${length === 1 ? "" : "s"}`;
};

// Every text in a message by its place. Blocks are told apart by kind and number, so that one more moves no other.
function leaves(value, place = "") {
  if (Array.isArray(value)) {
    const counts = {};
    return value.flatMap((one) => {
      const kind = one && typeof one === "object" ? (one.type ?? Object.keys(one)[0] ?? "") : "";
      counts[kind] = (counts[kind] ?? -1) + 1;
      return leaves(one, `${place}[${kind}${counts[kind] || !kind ? ` ${counts[kind]}` : ""}]`);
    });
  }
  if (value && typeof value === "object") return Object.entries(value).flatMap(([name, one]) => leaves(one, place ? `${place}.${name}` : name));
  return value === null || value === undefined ? [] : [[place, String(value)]];
}
