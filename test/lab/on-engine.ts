import { after, before, describe, test } from "node:test";
import { type Company, takeEngine } from "./engine-lock.ts";
import { openLab } from "./lab.ts";

const lab = await openLab();

/**
 * Declares the tests of `what` on a real engine, which they reach by `env`. Test files run side by side, but one that
 * says `alone`. Without an engine they are a single test that is skipped and says why, so that it is counted.
 */
export function onEngine(
  what: string,
  declare: (env: NodeJS.ProcessEnv) => void,
  company: Company = "together",
): void {
  if (lab.kind !== "ready") {
    test(what, { skip: lab.reason }, () => {});
    return;
  }
  const { env } = lab;
  describe(what, { concurrency: false }, () => {
    let leave: (() => Promise<void>) | undefined;
    before(async () => {
      leave = await takeEngine(company);
    });
    declare(env);
    after(() => leave?.());
  });
}
