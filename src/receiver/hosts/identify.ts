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

/** The host whose headers these are, else `unknownHost`. Headers are unsigned: a hint, not a proof. */
export function identifyHost(headers: IncomingHttpHeaders): Host {
  for (const host of hosts) {
    const { eventHeader, recognises } = host;
    const isSender = recognises?.(headers) ?? (eventHeader !== null && headers[eventHeader] !== undefined);
    if (isSender) return host;
  }
  return unknownHost;
}

/**
 * The hosts, in the order in which they are tried: Forgejo sends Gitea's headers too, Gitea sends those of Gogs, and
 * all three send GitHub's. Both Bitbuckets share their event header: Cloud is tried first and recognises its own.
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
