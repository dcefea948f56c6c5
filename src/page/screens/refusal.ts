import { html } from "hono/html";
import { STATUS_CODES } from "../../platform/http.ts";
import type { Refused } from "../run-client.ts";
import type { Screen, Viewer } from "./screen.ts";

const sentences: Readonly<Record<number, string>> = {
  403: "This is not for you to do.",
  404: "Nothing is here.",
  409: "This is not possible now.",
  503: "Hotpush does not answer.",
};

/** Why something was not shown or done. While Hotpush is away, the browser asks again by itself. */
export function refusalScreen(
  viewer: Viewer | null,
  { status, detail }: Pick<Refused, "status" | "detail">,
): Screen {
  const sentence = sentences[status] ?? `${STATUS_CODES[status] ?? "Error"}.`;
  const main = html`<div class="centre" id="refusal" data-live><p class="status">${status}</p><h1>${sentence}</h1><p>${detail}</p><p><a class="button" href="/">To the projects</a></p></div>`;
  return { title: `${sentence} · Hotpush`, tone: "bad", viewer, main, everySeconds: status === 503 ? 3 : 0 };
}
