import type { Scope } from "../test/harness/temporary.ts";

/** Runs `work` with a scope of its own. At its end, everything opened in the scope is closed, last opened first. */
export async function withScope<Result>(work: (scope: Scope) => Promise<Result>): Promise<Result> {
  const closers: (() => unknown)[] = [];
  const scope = { after: (close: () => unknown) => closers.push(close) } as unknown as Scope;
  try {
    return await work(scope);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}
