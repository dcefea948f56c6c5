import { html } from "hono/html";
import { assetPath } from "../assets.ts";
import { icon, mark, type Tone } from "./icons.ts";
import type { Markup } from "./markup.ts";

/** Who looks at a screen. */
export interface Viewer {
  readonly name: string;
  /** Whether they may act; a viewer sees no buttons. */
  readonly isOperator: boolean;
  /** A fresh form token. */
  readonly token: string;
}

export interface Screen {
  readonly title: string;
  /** What the icon in the browser's tab says. */
  readonly tone: Tone;
  /** null: nobody is signed in. */
  readonly viewer: Viewer | null;
  readonly main: Markup;
  /** How often the browser looks for changes; 0: never. */
  readonly everySeconds?: number;
  readonly script?: "log.js";
}

/** @returns the whole document */
export async function renderScreen(screen: Screen): Promise<string> {
  const { title, tone, viewer, main, everySeconds = 0, script } = screen;
  const body = html`<body data-every="${everySeconds}">
<a class="skip" href="#main">Skip to the content</a>
<header class="top"><div class="wrap">
<a class="mark" href="/">${mark()}<span>Hotpush</span></a>
${viewer && html`<nav aria-label="Pages"><a href="/">Projects</a></nav>${visitor(viewer)}`}
</div></header>
<p id="offline" class="offline" role="status" hidden>${icon("idle")} No connection. This page goes on by itself when there is one.</p>
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

function visitor({ name, isOperator }: Viewer): Markup {
  return html`<a class="who" href="/sessions"><span>${name}</span><small>${isOperator ? "operator" : "viewer"}</small></a>`;
}
