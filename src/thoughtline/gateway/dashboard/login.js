// Who has no cookie, or came by a link that is no longer good, logs in here with the admin token.

import { html, useEffect, useState } from "./preact.js";
import { logIn } from "./api.js";
import { go } from "./places.js";
import { useDoing } from "./parts.js";

export function Login({ place, onDone }) {
  const [token, setToken] = useState("");
  const [wasLink] = useState("token" in place.query);
  const doing = useDoing();
  useEffect(() => {
    document.title = "Log in · thoughtline";
    if (wasLink) go("/login", { isReplacing: true }); // a token does not stay in the address
  }, [wasLink]);
  const submit = async (event) => {
    event.preventDefault();
    const isIn = await doing.run(() => logIn(token).then(() => true));
    if (isIn) onDone();
  };
  const wrong = doing.problem?.status === 401;
  return html`<main class="login">
    <div class="brand"><img src="/assets/favicon.svg" alt="" /><h1>thoughtline</h1></div>
    <p>This gateway remembers what models think and puts it back. To open its dashboard, log in with the admin token.</p>
    ${wasLink && !doing.problem && html`<p class="notice">This login link has already been used or comes from an earlier start. Log in with the admin token instead.</p>`}
    <form onSubmit=${submit} method="post" action="/login">
      <label>Admin token
        <input type="password" name="token" required autofocus autocomplete="current-password" value=${token}
          onInput=${(event) => setToken(event.target.value)} />
      </label>
      <button class="primary" disabled=${doing.isBusy}>Log in</button>
    </form>
    ${doing.problem && html`<div class="problem" role="alert"><strong>${wrong ? "That isn't the admin token." : doing.problem.message}</strong> ${doing.problem.remedy}</div>`}
    <p class="soft">The token is in the file that the banner of <code>thoughtline serve</code> names, or in <code>admin_token</code> of your
      settings. The banner's login link needs no token; each start has a new one.</p>
  </main>`;
}
