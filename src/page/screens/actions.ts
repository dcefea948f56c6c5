import { html } from "hono/html";
import type { Markup } from "./markup.ts";
import type { Viewer } from "./screen.ts";

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
export function actionBar(viewer: Viewer, actions: readonly VisitorAction[]): Markup | null {
  if (actions.length === 0) return null;
  return html`<div class="actions">${actions.map((action) => actionButton(viewer, action))}</div>`;
}

export function actionButton({ token }: Viewer, action: VisitorAction): Markup {
  const { id, path, label, question, consequence, isDangerous = false, values = {}, asksFor } = action;
  const hidden = Object.entries({ ...values, token });
  return html`<button type="button" popovertarget="${id}" class="${isDangerous ? "danger" : ""}">${label}</button>
<div id="${id}" class="confirm" popover role="dialog" aria-labelledby="${id}-q"><form method="post" action="${path}">
<h2 id="${id}-q">${question}</h2><p>${consequence}</p>
${asksFor && html`<label>${asksFor.label}<input name="${asksFor.name}" maxlength="200" autocomplete="off"></label>`}
${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<div class="choices"><button type="button" popovertarget="${id}" popovertargetaction="hide">Not now</button><button class="primary ${isDangerous ? "danger" : ""}" autofocus>${label}</button></div>
</form></div>`;
}
