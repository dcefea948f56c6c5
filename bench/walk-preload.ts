/**
 * Loaded into the service by bench/walk.ts. SIGUSR2 starts counting the functions that are called; the next SIGUSR2 writes
 * those of `src/` to WALK_PATH.
 */
import { writeFileSync } from "node:fs";
import { type Profiler, Session } from "node:inspector";

const session = new Session();
session.connect();
let isCounting = false;

process.on("SIGUSR2", () => {
  if (isCounting) return finish();
  isCounting = true;
  session.post("Profiler.enable");
  session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  writeFileSync(`${process.env.WALK_PATH}.started`, "");
});

function finish(): void {
  session.post("Profiler.takePreciseCoverage", (error, coverage) => {
    if (error) throw error;
    writeFileSync(process.env.WALK_PATH ?? "", JSON.stringify(called(coverage.result)));
  });
}

export function called(
  scripts: readonly Profiler.ScriptCoverage[],
): Readonly<Record<string, readonly string[]>> {
  const own = scripts.filter(({ url }) => /\/src\/.+\.ts$/.test(url));
  const functions = own.map(({ url, functions }) => {
    // The first range of a file is the file itself.
    const names = functions
      .filter(({ ranges: [range] }) => (range?.count ?? 0) > 0 && (range?.startOffset ?? 0) > 0)
      .map(({ functionName }) => functionName || "(anonymous)");
    return [url.replace(/^.*\/src\//, "src/"), names] as const;
  });
  return Object.fromEntries(functions.filter(([, names]) => names.length > 0));
}
