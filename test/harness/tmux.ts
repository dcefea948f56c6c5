import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { launcher } from "./hotpush.ts";
import { noServer } from "./no-server.ts";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

/** A real terminal of 80 columns, with a shell whose prompt is `ready>`. */
export interface TestTerminal {
  readonly type: (line: string) => void;
  readonly press: (key: string) => void;
  /** The visible lines of the screen. */
  readonly screen: () => readonly string[];
  /** The same with colour codes, and with wrapped lines joined. */
  readonly raw: () => string;
  readonly waitFor: (pattern: RegExp) => Promise<string>;
}

export function openTestTerminal(scope: Scope, env: Readonly<Record<string, string>>): TestTerminal {
  const server = `hotpush-test-${randomBytes(6).toString("hex")}`;
  const tmux = (...args: readonly string[]) =>
    execFileSync("tmux", ["-L", server, "-f", "/dev/null", ...args], { encoding: "utf8", stdio: "pipe" });
  const variables = {
    ...noServer,
    ...env,
    PATH: `${dirname(launcher)}:${process.env.PATH}`,
    PS1: "ready> ",
  };
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const shell = ["env", ...settings, "bash", "--norc", "--noprofile"];
  tmux("new-session", "-d", "-x", "80", "-y", "80", "-s", "test", ...shell);
  scope.after(() => tmux("kill-server"));
  const screen = () => tmux("capture-pane", "-p", "-t", "test").trimEnd().split("\n");
  return {
    type: (line) => void tmux("send-keys", "-t", "test", line, "Enter"),
    press: (key) => void tmux("send-keys", "-t", "test", key),
    screen,
    raw: () => tmux("capture-pane", "-p", "-e", "-J", "-t", "test"),
    waitFor: (pattern) =>
      until(`${pattern} on the screen`, () => {
        const text = screen().join("\n");
        return pattern.test(text) && text;
      }),
  };
}
