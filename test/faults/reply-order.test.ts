import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deliver, githubPush, randomCommit } from "../harness/delivery.ts";
import { needs } from "../harness/requirements.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const pushes = 100;

const claim = `each of ${pushes} pushes is synced before its 202, and recorded before it leaves the spool`;

/** Traces the system calls of a service during single and simultaneous pushes. */
test(claim, needs("strace"), async (t) => {
  const tracePath = join(temporaryDirectory(t), "trace");
  const service = await startService(t, { wrapper: tracer(tracePath) });
  const commits = Array.from({ length: pushes }, randomCommit);
  const push = async (after: string) => (await deliver(service.url, githubPush({ after }))).status;
  for (const commit of commits.slice(0, pushes / 2)) assert.equal(await push(commit), 202);
  for (let start = pushes / 2; start < pushes; start += 10) {
    const statuses = await Promise.all(commits.slice(start, start + 10).map(push));
    assert.ok(statuses.every((status) => status === 202));
  }
  await service.end();
  const main = `${service.child.pid} `;
  const isOver = (line: string) => line.startsWith(main) && line.includes("+++ exited");
  await until("the trace is complete", () => readFileSync(tracePath, "utf8").split("\n").some(isOver));
  const calls = readCalls(readFileSync(tracePath, "utf8").split("\n"));
  assert.deepEqual(
    commits.filter((commit) => !isInOrder(calls, commit)),
    [],
  );
});

/** Of a system call, the lines of the trace at which it began and returned. */
interface Call {
  readonly text: string;
  readonly began: number;
  readonly returned: number;
}

/** A call that another thread interrupts stands on two lines. */
function readCalls(lines: readonly string[]): readonly Call[] {
  const calls: Call[] = [];
  const unfinished = new Map<string, Pick<Call, "text" | "began">>();
  for (const [index, line] of lines.entries()) {
    const [, thread = "", text = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const begun = unfinished.get(thread);
    if (text.endsWith("<unfinished ...>")) unfinished.set(thread, { text, began: index });
    else if (text.startsWith("<... ") && begun) calls.push({ ...begun, returned: index });
    else calls.push({ text, began: index, returned: index });
  }
  return calls;
}

function isInOrder(calls: readonly Call[], commit: string): boolean {
  const first = (pattern: RegExp, afterLine = -1) =>
    calls.find(({ text, began }) => began > afterLine && pattern.test(text));
  const file = first(new RegExp(`^p?write(64|v)?\\(\\d+<[^>]*\\.push\\.new>.*${commit}`));
  const [, id = "none"] = /\/(\w+)\.push\.new>/.exec(file?.text ?? "") ?? [];
  const fileSync = first(new RegExp(`^f(data)?sync\\(\\d+<[^>]*/${id}\\.push\\.new>`), file?.returned);
  const spoolSync = first(/^f(data)?sync\(\d+<[^>]*\/spool>/, fileSync?.returned);
  const reply = first(new RegExp(`^(write|writev|sendto)\\(\\d+<socket.*${commit}`));
  const record = first(new RegExp(`^pwrite64\\(\\d+<[^>]*-wal>.*${commit}`));
  const recordSync = first(/^f(data)?sync\(\d+<[^>]*-wal>/, record?.returned);
  const removal = first(new RegExp(`^unlink(at)?\\(.*/${id}\\.push"`));
  assert.ok(
    reply && removal && record,
    `the reply for ${commit}, its record and its removal are in the trace`,
  );
  const isSynced = fileSync !== undefined && spoolSync !== undefined && spoolSync.returned < reply.began;
  return isSynced && recordSync !== undefined && recordSync.returned < removal.began;
}

/** -y: descriptors with their paths; -s: whole pages of the database, which contain the commits. */
function tracer(tracePath: string): string[] {
  const calls = "trace=pwrite64,fsync,fdatasync,write,writev,sendto,unlink,unlinkat";
  return ["strace", "-D", "-f", "-y", "-s", "8192", "-o", tracePath, "-e", calls];
}
