import { html } from "hono/html";
import { callPath } from "#calls/table";
import { logView } from "./deployment.ts";
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
    service !== undefined && logView({ events: `/api${callPath("serviceLog", { project, service })}` }, null);
  const main = html`${screenHead(crumbs, null, sentence, [])}
<div class="heading row"><nav class="filters small soft" aria-label="Services">${links}</nav></div>${log}`;
  const title = `${sentence} · Hotpush`;
  return { title, tone: "idle", visitor, main, ...(service !== undefined && { script: "log.js" }) };
}
