import { html } from "hono/html";
import { callPath } from "#calls/table";
import { logBar } from "./deployment.ts";
import { ask, nothingHere, type Screen, screenHead, type Wanted } from "./screen.ts";

/** What the containers of a service print, by the viewer of the logs of deployments; for operators. */
export async function findServiceLog(
  { run, visit, visitor, query }: Wanted,
  project: string,
): Promise<Screen> {
  const { services } = await ask(run, visit, "services", { project });
  const service = query.get("service") ?? services[0];
  if (service !== undefined && !services.includes(service)) nothingHere();
  const crumbs = [
    [`/projects/${project}`, project],
    ["", "running logs"],
  ] as const;
  const sentence =
    service === undefined ? `${project} has no containers.` : `What ${service} of ${project} prints`;
  const links = services.map(
    (one) =>
      html`<a href="/projects/${project}/logs?service=${one}"${one === service ? html` aria-current="true"` : ""}>${one}</a>`,
  );
  const log =
    service !== undefined &&
    html`<section class="log" id="log" aria-label="Log" data-events="/api${callPath("serviceLog", { project, service })}" data-place="since" data-over="false" data-state="running" data-exit="" data-started="" data-ended="">
${logBar(null)}
<div id="lines" role="log" aria-live="off" aria-label="Lines" tabindex="0"></div>
<p class="tail" id="tail">It is read by a script of this page.</p>
<p id="said" class="unseen" role="status"></p></section>`;
  const main = html`${screenHead(crumbs, { tone: "idle", sentence, about: [] })}
<nav class="filters" aria-label="Services">${links}</nav>${log}`;
  const title = `${sentence} · Hotpush`;
  return { title, tone: "idle", visitor, main, ...(service !== undefined && { script: "log.js" }) };
}
