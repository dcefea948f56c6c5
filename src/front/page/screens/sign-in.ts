import { html } from "hono/html";
import type { SessionJson } from "#calls/shapes";
import { callPath } from "#calls/table";
import { STATUS_CODES } from "#platform/http";
import type { Refused } from "../run-client.ts";
import { actionButton, ask, type Found, type Screen, type Visitor, type Wanted } from "./screen.ts";
import { ago, type Markup, mark } from "./words.ts";

/**
 * Somebody followed a one-time link. It is used up by the button and not by the visit, because chat programs visit every
 * link that they show.
 */
export function linkScreen(link: string): Screen {
  const main = html`<div class="centre">${mark()}<h1>Sign in to Hotpush</h1>
<p class="soft">This browser stays signed in until 30 days after your last visit.</p>
<form method="post" action="/sign-in"><input type="hidden" name="link" value="${link}"><button class="primary large" autofocus>Sign in</button></form></div>`;
  return { title: "Sign in · Hotpush", tone: "idle", visitor: null, main };
}

/** @param refusal why a link did not open anything; null: there was none */
export function signInScreen(refusal: string | null): Screen {
  const main = html`<div class="centre">${mark()}<h1>${refusal === null ? "Sign in" : "This link opens nothing"}</h1>
<p>${refusal ?? "There is no password. Make a link on the server, and follow it:"}</p>
<pre><code>hotpush open</code></pre>
<p class="soft">A link works once, for two minutes. With <code>--operator</code> it also deploys; without, it only looks.</p></div>`;
  return { title: "Sign in · Hotpush", tone: "idle", visitor: null, main };
}

const sentences: Readonly<Record<number, string>> = {
  403: "This is not for you to do.",
  404: "Nothing is here.",
  409: "This is not possible now.",
  503: "Hotpush does not answer.",
};

/** Why something was not shown or done. While Hotpush is away, the browser asks again by itself. */
export function refusalScreen(
  visitor: Visitor | null,
  { status, detail }: Pick<Refused, "status" | "detail">,
): Screen {
  const sentence = sentences[status] ?? `${STATUS_CODES[status] ?? "Error"}.`;
  const main = html`<div class="centre" id="refusal" data-live><p class="status">${status}</p><h1>${sentence}</h1><p>${detail}</p><p><a class="button" href="/">To the projects</a></p></div>`;
  return { title: `${sentence} · Hotpush`, tone: "bad", visitor, main, everySeconds: status === 503 ? 3 : 0 };
}

/** The sessions of who asks. */
export async function findSessions({ run, visit, visitor }: Wanted): Found {
  const answer = await ask(run, visit, "sessions", {});
  return answer.kind === "refused" ? answer : sessionsScreen(visitor, answer.value.sessions);
}

/** The browsers in which a visitor is signed in. */
export function sessionsScreen(visitor: Visitor, sessions: readonly SessionJson[]): Screen {
  const main = html`<h1>You are signed in as ${visitor.name}.</h1>
<p class="sub"><span>${visitor.isOperator ? "operator: you may deploy, cancel, roll back and pause" : "viewer: you may look"}</span></p>
<ul class="sessions">${sessions.map((session) => row(visitor, session, session.id === visitor.sessionId))}</ul>`;
  return { title: "Your sessions · Hotpush", tone: "idle", visitor, main };
}

function row(
  visitor: Visitor,
  { id, agent, address, createdAt, lastSeenAt }: SessionJson,
  isPresent: boolean,
): Markup {
  const label = isPresent ? "Sign out" : "End this session";
  return html`<li><div><b>${browserIn(agent ?? "")}</b>${isPresent && html` <span class="tag good">this browser</span>`}
<p class="soft">from ${address ?? "an unknown address"}, signed in ${ago(createdAt)}, last seen ${ago(lastSeenAt)}</p></div>
${actionButton(visitor, {
  ...{ id: `end-${id}`, path: callPath("signOut", {}), label, values: { id: String(id) } },
  question: isPresent ? "Sign out of this browser?" : "End this session?",
  consequence: "To sign in again takes a new link from the server.",
})}</li>`;
}

/** The first match names it: Edge and Opera also call themselves Chrome, and Chrome calls itself Safari. */
const browsers = {
  Edg: "Edge",
  OPR: "Opera",
  Firefox: "Firefox",
  Chrome: "Chrome",
  Safari: "Safari",
} as const;

function browserIn(agent: string): string {
  const found = Object.entries(browsers).find(([sign]) => agent.includes(`${sign}/`));
  const system = /Android|iPhone|iPad|Windows|Mac OS X|Linux/.exec(agent)?.[0].replace("Mac OS X", "macOS");
  return [found?.[1] ?? "A browser", system && `on ${system}`].filter(Boolean).join(" ");
}
