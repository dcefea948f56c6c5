import "../harness/environment.ts";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const script = join(import.meta.dirname, "clean-server.sh");

export interface Answer {
  readonly question: RegExp;
  readonly text: string;
}

export interface Typed {
  /** The exit code. */
  readonly code: number;
  readonly stdout: string;
  /** Standard output and standard error, as they came. */
  readonly output: string;
}

/** Why there can be no such server here, or null. */
export function obstacleToCleanServer(): string | null {
  if (process.getuid?.() !== 0) return "it takes root to make namespaces";
  return ["unshare", "nsenter", "ip", "iptables"].find((program) => !isInstalled(program)) ?? null;
}

function isInstalled(program: string): boolean {
  return (process.env.PATH ?? "").split(":").some((directory) => existsSync(join(directory, program)));
}

/** How this machine reaches the network; a server here has no other way. */
const network = /^(?:\w+_proxy|SSL_CERT_\w+|NODE_EXTRA_CA_CERTS|npm_config_registry)$/i;

/** A server with Docker, git and npm, on which nobody has used Hotpush (clean-server.sh). */
export type CleanServer = Awaited<ReturnType<typeof startCleanServer>>;

/**
 * Starts one.
 *
 * @param labEnv of a Docker from which it copies the base images
 * @param isBare without Docker, git and npm: a new Debian with sshd
 * @throws Error if it does not start
 */
export async function startCleanServer(labEnv: NodeJS.ProcessEnv, isBare = false) {
  const env = { ...labEnv, BARE: isBare ? "1" : "" };
  const child = spawn(script, ["serve"], { env, stdio: ["pipe", "pipe", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const ended = once(child, "close");
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const { value: line = "" } = await lines.next();
  const [, address, pid] = /^ready (\S+) (\d+)$/.exec(line) ?? [];
  if (address === undefined || pid === undefined)
    throw new Error(`There is no clean server: ${line} ${said}`);
  return {
    /** Its IPv4 address, at which this machine reaches it as git hosts and visitors do. */
    address,
    /** Its first process, as this machine counts it. */
    pid: Number(pid),
    /** Runs a command as a person does, who gives the answers. */
    type(directory: string, command: string, answers?: readonly Answer[]): Promise<Typed> {
      const passed = Object.entries(process.env).filter(([name]) => network.test(name));
      const shown = {
        PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        HOME: "/root",
        USER: "root",
        SHELL: "/bin/bash",
        TERM: "xterm",
        LANG: "C.UTF-8",
        COLUMNS: "120",
        BUILDKIT_PROGRESS: "plain",
      };
      const env = Object.entries({ ...Object.fromEntries(passed), ...shown }).map((pair) => pair.join("="));
      const typed = answers
        ? ["script", "--quiet", "--return", "--command", command, "/dev/null"]
        : ["bash", "-c", command];
      const child = spawn(
        "nsenter",
        ["--all", "--target", pid, "env", "-i", `--chdir=${directory}`, ...env, ...typed],
        {
          // With a socket as its input, as Node's pipes are, bash would believe that it serves a login.
          stdio: [answers ? "pipe" : "ignore", "pipe", "pipe"],
        },
      );
      return answer(child, answers);
    },
    /** Where this machine sees a file of the server. */
    file: (path: string) => `/proc/${pid}/root${path}`,
    /** Ends every process on it, and removes it. The end of this process does so too, also by SIGKILL. */
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}

/**
 * Types the answers to what a program asks, each once, and reads what it prints until its end.
 *
 * @param onOutput gets all of its output so far
 * @throws Error if it did not ask all
 */
export async function answer(
  child: ChildProcess,
  answers: readonly Answer[] = [],
  onOutput: (output: string) => void = () => {},
): Promise<Typed> {
  let stdout = "";
  let output = "";
  let answered = 0;
  let from = 0;
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      onOutput(output);
      const next = answers[answered];
      if (!next?.question.test(output.slice(from))) return;
      from = output.length;
      answered += 1;
      child.stdin?.write(`${next.text}\r`);
    });
  const [code]: (number | null)[] = await once(child, "close");
  if (answered < answers.length) throw new Error(`It did not ask ${answers[answered]?.question}:\n${output}`);
  return { code: code ?? -1, stdout, output };
}
