import { describe, test } from "node:test";
import { openLab } from "./lab.ts";

const lab = await openLab();

/**
 * Declares the tests of `what` on a real engine, which they reach by `env`. Without one they are a single test that is
 * skipped and says why, so that it is counted.
 */
export function onEngine(what: string, declare: (env: NodeJS.ProcessEnv) => void): void {
  if (lab.kind === "ready") describe(what, { concurrency: false }, () => declare(lab.env));
  else test(what, { skip: lab.reason }, () => {});
}
