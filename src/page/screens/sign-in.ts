import { html } from "hono/html";
import { mark } from "./icons.ts";
import type { Screen } from "./screen.ts";

/**
 * Somebody followed a one-time link. It is used up by the button and not by the visit, because chat programs visit every
 * link that they show.
 */
export function linkScreen(link: string): Screen {
  const main = html`<div class="centre">${mark()}<h1>Sign in to Hotpush</h1>
<p class="soft">This browser stays signed in until 30 days after your last visit.</p>
<form method="post" action="/sign-in"><input type="hidden" name="link" value="${link}"><button class="primary large" autofocus>Sign in</button></form></div>`;
  return { title: "Sign in · Hotpush", tone: "idle", viewer: null, main };
}

/** @param refusal why a link did not open anything; null: there was none */
export function signInScreen(refusal: string | null): Screen {
  const main = html`<div class="centre">${mark()}<h1>${refusal === null ? "Sign in" : "This link opens nothing"}</h1>
<p>${refusal ?? "There is no password. Make a link on the server, and follow it:"}</p>
<pre><code>hotpush open</code></pre>
<p class="soft">A link works once, for two minutes. With <code>--operator</code> it also deploys; without, it only looks.</p></div>`;
  return { title: "Sign in · Hotpush", tone: "idle", viewer: null, main };
}
