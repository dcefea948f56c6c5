import type { IncomingHttpHeaders } from "node:http";
import { azureDevops } from "./azure-devops.ts";
import { bitbucketCloud } from "./bitbucket-cloud.ts";
import { bitbucketDataCenter } from "./bitbucket-data-center.ts";
import { forgejo } from "./forgejo.ts";
import { gitea } from "./gitea.ts";
import { gitee } from "./gitee.ts";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";
import { gitness, harness } from "./gitness.ts";
import { gogs } from "./gogs.ts";
import type { Host } from "./host.ts";
import { onedev } from "./onedev.ts";
import { pagure } from "./pagure.ts";
import { sourcehut } from "./sourcehut.ts";
import { unknownHost } from "./unknown.ts";

/** The host whose headers these are; `unknownHost` where no header tells. Headers are unsigned: a hint, no proof. */
export function identifyHost(headers: IncomingHttpHeaders): Host {
  return hosts.find((host) => isSentBy(host, headers)) ?? unknownHost;
}

/**
 * The hosts, in the order in which they are asked: Forgejo sends Gitea's headers too, Gitea sends those of Gogs, and
 * all three send GitHub's. Both Bitbuckets share their event header: Cloud is asked first and knows its own.
 */
export const hosts: readonly Host[] = [
  forgejo,
  gitea,
  gogs,
  github,
  gitlab,
  bitbucketCloud,
  bitbucketDataCenter,
  pagure,
  gitness,
  harness,
  gitee,
  onedev,
  sourcehut,
  azureDevops,
];

function isSentBy(host: Host, headers: IncomingHttpHeaders): boolean {
  if (host.recognises !== undefined) return host.recognises(headers);
  return host.eventHeader !== null && headers[host.eventHeader] !== undefined;
}
