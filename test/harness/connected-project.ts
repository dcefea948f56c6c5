import { join } from "node:path";
import { parseHostedRepository } from "../../src/config/git-hosts.ts";
import { makeSecret } from "../../src/config/secret.ts";
import { type ConnectOptions, connect } from "../../src/setup/connect.ts";
import { HostError } from "../../src/setup/host-apis.ts";
import { hostToken, startFakeGitHost } from "./fake-git-host.ts";
import type { HostName } from "./git-host-apis.ts";
import { makeServer } from "./machine.ts";
import { makeRepository } from "./repository.ts";
import type { Scope } from "./temporary.ts";

/** What GitLab takes too. */
export const signingToken = `whsec_${Buffer.alloc(32, "k").toString("base64")}`;

/** A project of a server, whose checkout has an ssh remote, and its repository at a fake host. */
export type ConnectedProject = Awaited<ReturnType<typeof makeConnectedProject>>;

/** Nobody answers there. */
const webhookUrl = "http://0.0.0.0:1/webhook/shop";

export async function makeConnectedProject(scope: Scope, name: HostName) {
  const host = await startFakeGitHost(scope, name);
  const server = makeServer(scope);
  const repository = makeRepository(scope);
  repository.commit();
  // Nobody answers there either.
  repository.git("remote", "add", "origin", "ssh://git@127.0.0.1:1/octo/shop.git");
  server.addProject("shop", repository.directory, {
    WEBHOOK_SECRET: signingToken,
    WEBHOOK_URL: webhookUrl,
    HOTPUSH_GIT_HOST: name,
  });
  const repositoryAtHost = parseHostedRepository(host.address) ?? undefined;
  return {
    host,
    server,
    repository,
    webhookUrl,
    keyPath: join(repository.directory, ".git/hotpush-deploy-key"),
    /** Runs `hotpush connect` in this process. @returns what was said, the exit code, and why it or the host refused */
    async connect(options: ConnectOptions = {}, token: string | null = hostToken) {
      const said: string[] = [];
      const screen = {
        readToken: async () => (token === null ? null : makeSecret(token)),
        showForm: () => void said.push("the form"),
        showKey: (key: string) => void said.push(key),
        say: (text: string) => void said.push(text),
      };
      const given = {
        project: "shop",
        ...(repositoryAtHost && { repository: repositoryAtHost }),
        ...options,
      };
      try {
        return { code: await connect(given, server.env, screen), said, refusal: null, fault: null };
      } catch (error) {
        const fault = error instanceof HostError ? error.code : null;
        return { code: 1, said, refusal: (error as Error).message, fault };
      }
    },
  };
}
