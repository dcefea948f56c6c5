import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { findFreePort, startApp } from "./app.ts";
import { startProject } from "./developer.ts";
import type { DemoDirectory } from "./directory.ts";
import { git, type Place } from "./git.ts";
import { addWebhook, makeGitHost } from "./git-host.ts";
import { type Service, startService } from "./service.ts";
import type { ServiceLog } from "./service-log.ts";

/** Everything in the tour: a git host, a developer, a server with the app, and Hotpush. */
export interface Scene {
  readonly directory: DemoDirectory;
  readonly host: Place;
  readonly developer: Place;
  readonly server: Place;
  readonly appUrl: string;
  readonly service: Service;
  readonly statePath: string;
  readonly log: ServiceLog;
}

/** The same for the clone and the checkout. */
const remote = "../git-host/app.git";

export async function makeScene(directory: DemoDirectory, log: ServiceLog): Promise<Scene> {
  const appPort = await findFreePort();
  const env = { ...directory.env, APP_PORT: String(appPort) };
  const placeOf = (name: string) => ({ path: join(directory.path, name), env });
  const host = placeOf("git-host/app.git");
  const developer = placeOf("developer");
  const server = placeOf("server");
  const statePath = join(directory.path, "state");
  const secretPath = join(directory.path, "secret");

  await makeGitHost(host);
  await startProject(developer, remote);
  await git({ path: directory.path, env }, "clone", "--quiet", host.path, server.path);
  await git(server, "remote", "set-url", "origin", remote);
  await startApp(server);
  writeFileSync(secretPath, randomBytes(32).toString("hex"), { mode: 0o600 });
  const settings = {
    WEBHOOK_SECRET_FILE: secretPath,
    REPO_PATH: server.path,
    STATE_PATH: statePath,
    DEPLOY_ENV: "APP_PORT",
  };
  const service = await startService({ path: directory.path, env }, settings, log);
  addWebhook(host, { url: service.url, secretPath });
  const appUrl = `http://127.0.0.1:${appPort}`;
  return { directory, host, developer, server, appUrl, service, statePath, log };
}
