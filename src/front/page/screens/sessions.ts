import { html } from "hono/html";
import type { SessionJson } from "#calls/shapes";
import type { KnownVisitor } from "../visitor.ts";
import { actionButton, type Found, type Screen, type Viewer, type Wanted } from "./screen.ts";
import { ago, type Markup } from "./words.ts";

/** The sessions of who asks. */
export async function findSessions({ viewer, sessionId }: KnownVisitor, { read }: Wanted): Found {
  const answer = await read("/sessions");
  if (answer.kind === "refused") return answer;
  const { sessions } = answer.value as { sessions: readonly SessionJson[] };
  return sessionsScreen(viewer, sessions, sessionId);
}

/** The browsers in which a visitor is signed in. */
export function sessionsScreen(viewer: Viewer, sessions: readonly SessionJson[], present: number): Screen {
  const main = html`<h1>You are signed in as ${viewer.name}.</h1>
<p class="sub"><span>${viewer.isOperator ? "operator: you may deploy, cancel, roll back and pause" : "viewer: you may look"}</span></p>
<ul class="sessions">${sessions.map((session) => row(viewer, session, session.id === present))}</ul>`;
  return { title: "Your sessions · Hotpush", tone: "idle", viewer, main };
}

function row(
  viewer: Viewer,
  { id, agent, address, createdAt, lastSeenAt }: SessionJson,
  isPresent: boolean,
): Markup {
  const label = isPresent ? "Sign out" : "End this session";
  return html`<li><div><b>${browserIn(agent ?? "")}</b>${isPresent && html` <span class="tag good">this browser</span>`}
<p class="soft">from ${address ?? "an unknown address"}, signed in ${ago(createdAt)}, last seen ${ago(lastSeenAt)}</p></div>
${actionButton(viewer, {
  ...{ id: `end-${id}`, path: "/sign-out", label, values: { id: String(id) } },
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
