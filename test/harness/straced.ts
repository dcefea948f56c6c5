import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Scope } from "./temporary.ts";

/**
 * A prefix that makes system calls of a command fail, in the syntax of strace's `inject`, such as
 * `fsync:error=EIO:when=3`. The main thread writes the database and starts scripts; the others, which write the spool, are
 * traced only with `-f`, and each counts for itself. The service stays a child of ours (-D).
 */
export function straced(fault: string, ...options: readonly "-f"[]): string[] {
  const [calls] = fault.split(":");
  return [
    "strace",
    "-D",
    ...options,
    "-qq",
    "-o",
    "/dev/null",
    "-e",
    `trace=${calls}`,
    "-e",
    `inject=${fault}`,
  ];
}

/** Makes system calls of a running process fail, as `straced` does, until the returned function is called. */
export async function injectFault(scope: Scope, pid: number, fault: string): Promise<() => Promise<void>> {
  const [calls] = fault.split(":");
  const options = ["-o", "/dev/null", "-e", `trace=${calls}`, "-e", `inject=${fault}`];
  const tracer = spawn("strace", ["-p", String(pid), ...options], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(tracer, "exit");
  scope.after(() => tracer.kill("SIGKILL"));
  // strace reports on standard error that it has attached.
  await Promise.race([once(tracer.stderr, "data"), ended]);
  return async () => {
    tracer.kill("SIGTERM");
    await ended;
  };
}
