import type { TestContext } from "node:test";
import { type CliEnding, runCli } from "../harness/cli.ts";
import { testSecret } from "../harness/delivery.ts";
import { makeRepository, type TestRepository } from "../harness/repository.ts";
import { type RunningService, startService } from "../harness/service.ts";

/** A repository, and the service that `hotpush send` reaches from it. */
export interface SendSetting {
  readonly repository: TestRepository;
  readonly service: RunningService;
  /** Runs `hotpush send` in the repository, with the secret of the service. */
  readonly send: (...args: readonly string[]) => Promise<CliEnding>;
}

/** A repository with two commits and a remote, and a service that has its secret; `env` is for the service. */
export async function makeSetting(
  t: TestContext,
  env: Readonly<Record<string, string>> = {},
): Promise<SendSetting> {
  const repository = makeRepository(t);
  repository.commit("The first version");
  repository.commit("Show the tide of tomorrow");
  repository.git("remote", "add", "origin", "git@github.com:octo/shop.git");
  const service = await startService(t, { env });
  const secret = env.WEBHOOK_SECRET ?? testSecret;
  const send = (...args: readonly string[]) =>
    runCli(["send", ...args], {
      cwd: repository.directory,
      env: { WEBHOOK_SECRET: secret, WEBHOOK_PORT: String(service.port) },
    });
  return { repository, service, send };
}
