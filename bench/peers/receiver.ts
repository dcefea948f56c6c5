import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Scope } from "../../test/harness/temporary.ts";

/** A program that receives webhooks, running in a process of its own. */
export interface Receiver {
  readonly name: string;
  /** The URL for pushes. */
  readonly hookUrl: string;
  readonly port: number;
  readonly pid: number;
  /** From the start of the process to its first answer. */
  readonly startMs: number;
  readonly stop: () => Promise<void>;
}

export interface LaunchOptions {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** null: it has none. */
  readonly port: number | null;
  readonly hookPath: string;
  /** A path that the program answers, with any status, as soon as it is ready; or a socket that is then there. */
  readonly readyPath: string;
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

const longestStartMs = 15_000;

/** Starts a receiver and waits for its first answer. The output of every receiver is discarded. */
export async function launch(scope: Scope, options: LaunchOptions): Promise<Receiver> {
  const { command, port, cwd, env } = options;
  const [program, ...args] = command;
  const startedMs = performance.now();
  const child = spawn(program, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR, ...env },
    stdio: "ignore",
  });
  scope.after(() => stopProcess(child));
  await firstAnswer(options, child);
  return {
    name: options.name,
    hookUrl: `http://127.0.0.1:${port}${options.hookPath}`,
    port: port ?? 0,
    pid: child.pid ?? 0,
    startMs: performance.now() - startedMs,
    stop: () => stopProcess(child),
  };
}

async function firstAnswer({ name, port, readyPath }: LaunchOptions, child: ChildProcess): Promise<void> {
  const giveUpMs = performance.now() + longestStartMs;
  while (performance.now() < giveUpMs) {
    if (child.exitCode !== null)
      throw new Error(`${name} ended at its start with exit code ${child.exitCode}`);
    if (port === null ? existsSync(readyPath) : await answers(`http://127.0.0.1:${port}${readyPath}`)) return;
    await delay(2);
  }
  throw new Error(`${name} was not ready (${readyPath}) within ${longestStartMs / 1_000} s`);
}

async function answers(url: string): Promise<boolean> {
  const answer = await fetch(url).catch(() => null);
  await answer?.arrayBuffer();
  return answer !== null;
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await ended;
  clearTimeout(timer);
}
