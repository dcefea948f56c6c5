import { html } from "hono/html";
import { callPath } from "#calls/table";
import { STATUS_CODES } from "#platform/http";
import { actionButton, type Screen, type Visitor } from "./screen.ts";
import { mark } from "./words.ts";

/**
 * Somebody followed a one-time link. It is used up by the button and not by the visit, because chat programs visit every
 * link that they show.
 *
 * @param fault why the button did not work, and may do so now
 */
export function linkScreen(link: string, fault: string | null = null): Screen {
  const main = html`<div class="centre stack">${mark(44)}<h1>Sign in to Hotpush</h1>
<p class="soft">${fault ?? "This browser stays signed in until 30 days after your last visit."}</p>
<form method="post" action="/sign-in"><input type="hidden" name="link" value="${link}"><button class="primary" autofocus>Sign in</button></form></div>`;
  return { title: "Sign in · Hotpush", tone: "idle", visitor: null, main };
}

/** @param refusal why a link did not open anything; null: there was none */
export function signInScreen(refusal: string | null): Screen {
  const main = html`<div class="centre stack">${mark(44)}<h1>${refusal === null ? "Sign in" : "This link opens nothing"}</h1>
<p>${refusal ?? "There is no password. Make a link on the server, and follow it:"}</p>
<pre><code>hotpush open</code></pre>
<p class="soft">A link works once, for two minutes. For somebody who only looks: <code>hotpush open --name Ann</code>.</p></div>`;
  return { title: "Sign in · Hotpush", tone: "idle", visitor: null, main };
}

const sentences: Readonly<Record<number, string>> = {
  403: "This is not for you to do.",
  404: "Nothing is here.",
  409: "This is not possible now.",
  503: "Hotpush does not answer.",
};

/** Why something was not shown or done. While Hotpush is away, the browser asks again by itself. */
export function refusalScreen(visitor: Visitor | null, status: number, detail: string): Screen {
  const sentence = sentences[status] ?? `${STATUS_CODES[status] ?? "Error"}.`;
  const main = html`<div class="centre stack" id="refusal" data-live><p class="soft">${status}</p><h1>${sentence}</h1><p>${detail}</p><p><a class="button" href="/">To the projects</a></p></div>`;
  return { title: `${sentence} · Hotpush`, tone: "bad", visitor, main, everySeconds: status === 503 ? 3 : 0 };
}

/** Who is signed in, and the way out. */
export function accountScreen(visitor: Visitor): Screen {
  const may = visitor.isOperator
    ? "An operator: you may deploy, cancel, roll back and pause."
    : "A viewer: you may look.";
  const main = html`<div class="centre stack"><h1>You are signed in as ${visitor.name}.</h1><p class="soft">${may}</p>
${actionButton(visitor, {
  id: "sign-out",
  path: callPath("signOut", {}),
  label: "Sign out",
  question: "Sign out of this browser?",
  consequence: "To sign in again takes a new link from the server.",
})}</div>`;
  return { title: "Your account · Hotpush", tone: "idle", visitor, main };
}
