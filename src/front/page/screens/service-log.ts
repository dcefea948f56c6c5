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
  const service = query.get("service") ?? services[0] ?? "";
  if (services.length === 0) nothingHere(`${project} has no containers.`);
  if (!services.includes(service)) nothingHere();
  const sentence = `What ${service} of ${project} prints`;
  const links = services.map(
    (one) =>
      html`<a href="/projects/${project}/logs?service=${one}"${one === service ? html` aria-current="true"` : ""}>${one}</a>`,
  );
  const events = `/api${callPath("serviceLog", { project, service })}`;
  const main = html`${screenHead([project, "running logs"], null, sentence, [])}
<div class="heading row"><nav class="filters small soft" aria-label="Services">${links}</nav></div>${logView({ events }, null)}`;
  return { title: `${sentence} · Hotpush`, tone: "idle", visitor, main, everySeconds: 6, script: "log.js" };
}
