// Where a JSON pointer leads in a text: the line, counted from one. Findings name places by pointers.

const SPACE = /[\s,:]*/y;
const STRING = /"(?:[^"\\]|\\.)*"/y;
const PLAIN = /[^\s,:\]}]+/y;

// The line of every place in a text that is JSON; places behind the first mistake are not known.
export function linesOf(text) {
  const lines = new Map();
  const breaks = [...text.matchAll(/\n/g)].map((found) => found.index);
  const lineAt = (index) => {
    let [low, high] = [0, breaks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (breaks[middle] < index) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
  let at = 0;
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (!found) throw new SyntaxError("no JSON");
    at = pattern.lastIndex;
    return found[0];
  };
  const list = (place, end, next) => {
    at += 1;
    for (let index = 0; take(SPACE), text[at] !== end; index += 1) value(`${place}/${next(index)}`);
    at += 1;
  };
  const name = () => {
    const key = JSON.parse(take(STRING)).replaceAll("~", "~0").replaceAll("/", "~1");
    take(SPACE);
    return key;
  };
  const value = (place) => {
    take(SPACE);
    lines.set(place, lineAt(at));
    if (text[at] === "{") list(place, "}", name);
    else if (text[at] === "[") list(place, "]", (index) => index);
    else take(text[at] === '"' ? STRING : PLAIN);
  };
  try {
    value("");
  } catch {
    // what is known stays
  }
  return lines;
}

// The line of a place, or of the nearest one around it.
export function lineOf(lines, pointer) {
  for (let place = pointer; ; place = place.slice(0, place.lastIndexOf("/"))) {
    if (lines.has(place)) return lines.get(place);
    if (!place.includes("/")) return null;
  }
}
