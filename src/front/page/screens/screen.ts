import { html } from "hono/html";
import type { Asked } from "#calls/client";
import { type CallName, calls, type GivenBy, requestFor } from "#calls/table";
import { ProblemError } from "#problems";
import { assetPath } from "../answer.ts";
import type { RunClient, Visit } from "../run-client.ts";
import { icon, type Markup, mark, type Tone } from "./words.ts";

/** Who looks at a screen. */
export interface Visitor {
  readonly name: string;
  /** Whether they may act; a viewer sees no buttons. */
  readonly isOperator: boolean;
  /** Of their forms. */
  readonly token: string;
}

export interface Screen {
  readonly title: string;
  /** What the icon in the browser's tab says. */
  readonly tone: Tone;
  /** null: nobody is signed in. */
  readonly visitor: Visitor | null;
  readonly main: Markup;
  /** How often the browser looks for changes; 0: never. */
  readonly everySeconds?: number;
  readonly script?: "log.js";
}

/** @returns the whole document */
export async function renderScreen(screen: Screen): Promise<string> {
  const { title, tone, visitor, main, everySeconds = 0, script } = screen;
  const body = html`<body data-every="${everySeconds}">
<a class="skip" href="#main">Skip to the content</a>
<header class="top"><div class="wrap row">
<a class="mark row" href="/">${mark()}<span>Hotpush</span></a>
${visitor && html`<nav class="soft" aria-label="Pages"><a href="/">Projects</a></nav><a class="who row end" href="/account"><span class="clip">${visitor.name}</span><small class="soft">${visitor.isOperator ? "operator" : "viewer"}</small></a>`}
</div></header>
<p id="offline" class="offline row" role="status" hidden>${icon("idle")} No connection. This page goes on by itself when there is one.</p>
<main id="main" class="wrap" tabindex="-1">${main}</main>
</body>`;
  return String(
    await html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<link rel="icon" type="image/svg+xml" href="${assetPath(`favicon-${tone}.svg`)}">
<link rel="stylesheet" href="${assetPath("page.css")}">
<script type="module" src="${assetPath("page.js")}"></script>
${script && html`<script type="module" src="${assetPath(script)}"></script><link rel="modulepreload" href="${assetPath("log-text.js")}">`}
</head>${body}</html>`,
  );
}

/** Something short that is known; a false or empty one is not. */
export type Fact = Markup | string | false | null | undefined;

/** The way to a screen, and its heading: one sentence, the shape of a state, and what is known about it. */
export function screenHead(
  within: readonly [project: string, what: string | number] | null,
  tone: Tone | null,
  sentence: string,
  about: readonly Fact[],
): Markup {
  const crumbs = within && html`<a href="/projects/${within[0]}">${within[0]}</a><span>${within[1]}</span>`;
  return html`<p class="crumbs small soft"><a href="/">Projects</a>${crumbs}</p>
<div id="head" data-live><h1 class="row">${tone && icon(tone)}<span>${sentence}</span></h1><p class="sub soft">${about.map((fact) => fact && html`<span>${fact}</span>`)}</p></div>`;
}

/** Something that a visitor can do. It is asked for once more before it happens, also without JavaScript. */
export interface VisitorAction {
  /** Names it among those of the screen. */
  readonly id: string;
  /** Where its form goes. */
  readonly path: string;
  readonly label: string;
  readonly question: string;
  readonly consequence: string;
  readonly isDangerous?: boolean;
  /** Values that the form sends. */
  readonly values?: Readonly<Record<string, string>>;
  /** A text that the visitor may give. */
  readonly asksFor?: { readonly name: string; readonly label: string };
}

/** Buttons; nothing for who may only look. */
export function actionBar(visitor: Visitor, actions: readonly VisitorAction[]): Markup | null {
  if (actions.length === 0) return null;
  return html`<div class="actions row">${actions.map((action) => actionButton(visitor, action))}</div>`;
}

export function actionButton({ token }: Visitor, action: VisitorAction): Markup {
  const { id, path, label, question, consequence, isDangerous = false, values = {}, asksFor } = action;
  const hidden = Object.entries({ ...values, token });
  return html`<button type="button" popovertarget="${id}" class="${isDangerous ? "bad" : ""}">${label}</button>
<div id="${id}" class="confirm card" popover role="dialog" aria-labelledby="${id}-q"><form class="stack" method="post" action="${path}">
<h2 id="${id}-q">${question}</h2><p class="soft">${consequence}</p>
${asksFor && html`<label class="stack small">${asksFor.label}<input name="${asksFor.name}" maxlength="200" autocomplete="off"></label>`}
${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<div class="row"><button type="button" class="end" popovertarget="${id}" popovertargetaction="hide">Not now</button><button class="primary ${isDangerous ? "bad" : ""}" autofocus>${label}</button></div>
</form></div>`;
}

/** A request for a screen of somebody who is signed in. */
export interface Wanted {
  readonly run: RunClient;
  readonly visit: Visit;
  readonly visitor: Visitor;
  readonly path: string;
  readonly query: URLSearchParams;
}

/** For an address at which there is nothing. @throws ProblemError */
export function nothingHere(detail = "It may have been removed, or the address is wrong."): never {
  throw new ProblemError({ code: "not_found", detail });
}

/** Makes a call of the table for a visitor. @throws ProblemError if it is refused */
export async function ask<Name extends CallName>(
  run: RunClient,
  visit: Visit,
  name: Name,
  asked: Asked<Name>,
): Promise<GivenBy<Name>> {
  return (await run.call(visit, requestFor(calls[name], asked))) as GivenBy<Name>;
}
