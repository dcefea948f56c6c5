import { after, before, describe, test } from "node:test";
import { type Company, type OwnEngine, openLab, ownEngine, takeEngine } from "./lab.ts";

const lab = await openLab();

/**
 * Declares the tests of `what` on a real engine, which they reach by `env`. Test files share it, unless one must be alone
 * because an engine has only one of what it makes. Without an engine they are a single skipped test with the reason, so
 * that it is counted.
 */
export function onEngine(
  what: string,
  declare: (env: NodeJS.ProcessEnv) => void,
  company: Company = "together",
): void {
  if (lab.kind === "ready") declareIn(company, what, () => declare(lab.env));
  else test(what, { skip: lab.reason }, () => {});
}

/** As `onEngine`, for tests that must not run on somebody else's engine, such as killing it. */
export function onOwnEngine(
  company: Company,
  what: string,
  declare: (env: NodeJS.ProcessEnv, engine: OwnEngine) => void,
): void {
  const engine = lab.kind === "ready" ? ownEngine(lab.env) : null;
  if (lab.kind !== "ready") test(what, { skip: lab.reason }, () => {});
  else if (engine === null) test(what, { skip: "the Docker here is somebody else's" }, () => {});
  else declareIn(company, what, () => declare(lab.env, engine));
}

function declareIn(company: Company, what: string, declare: () => void): void {
  describe(what, { concurrency: false }, () => {
    let leave: (() => Promise<void>) | undefined;
    before(async () => {
      leave = await takeEngine(company);
    });
    declare();
    after(() => leave?.());
  });
}
