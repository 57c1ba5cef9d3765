// What the words mean that stand beside requests and turns.

import { html } from "./preact.js";
import { Tag } from "./parts.js";

const OUTCOMES = {
  ok: "answered; nothing had to be done",
  restored: "answered; reasoning was put back, or removed where it would have been refused",
  healed: "refused for its reasoning, corrected, sent again and answered",
  blank: "answered; a turn went up with the least that is accepted, because its reasoning was not found",
  lost: "answered; a turn went up without its reasoning, or the provider ignored some",
  late: "answered; the end of the answer did not wait until its turn was saved",
  refused: "the provider refused it, and the client got that answer",
  declined: "the gateway refused it",
  failed: "no usable answer: an error of the provider, or none could be reached",
  gone: "the client left before the end",
};

const TREATMENTS = {
  kept: "the client sent the turn's reasoning itself",
  restored: "the turn's own reasoning was put back",
  inherited: "the turn got the reasoning of an earlier one",
  blank: "the turn got the least that is accepted",
  stripped: "reasoning that would have been refused was removed",
  missing: "the turn needs reasoning and has none",
};

const Meanings = ({ of }) => html`<dl class="legend">${Object.entries(of).map(([word, meaning]) => html`<dt><${Tag} kind=${word} /></dt><dd>${meaning}</dd>`)}</dl>`;

export function Legend() {
  return html`<details class="legend"><summary>What the words mean</summary>
    <h2>Of a request</h2><${Meanings} of=${OUTCOMES} />
    <h2>Of a turn, with how many there were</h2><${Meanings} of=${TREATMENTS} />
  </details>`;
}
