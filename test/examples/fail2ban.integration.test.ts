import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Delivery, deliver, githubPush, withHeader } from "../harness/delivery.ts";
import { needs } from "../harness/requirements.ts";
import { startService } from "../harness/service.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const example = fileURLToPath(new URL("../../examples/fail2ban", import.meta.url));
const filter = join(example, "filter.d/hotpush.conf");

/** The lines that a real service prints about `deliveries`. */
async function logOf(t: Scope, deliveries: readonly Delivery[]): Promise<readonly string[]> {
  const service = await startService(t, { env: { TRUSTED_PROXIES: "127.0.0.1" } });
  let printed = "";
  service.child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    printed += chunk;
  });
  for (const delivery of deliveries) await deliver(service.url, delivery);
  await until("a line about each", () => printed.split("\n").length > deliveries.length);
  await service.end("SIGTERM");
  return printed.trimEnd().split("\n");
}

/** The addresses that the filter finds in `lines`, one for each line that matches. */
function foundIn(t: Scope, lines: readonly string[]): readonly string[] {
  const path = join(temporaryDirectory(t), "log");
  writeFileSync(path, `${lines.join("\n")}\n`);
  const args = ["--out", "ip", path, filter];
  return execFileSync("fail2ban-regex", args, { encoding: "utf8" }).trim().split("\n").filter(Boolean);
}

const from = (address: string, delivery: Delivery) => withHeader(delivery, "x-forwarded-for", address);
const forged = (fields = {}) => githubPush(fields, "another secret");

test("the filter finds who sent bad signatures and nobody else", needs("fail2ban"), async (t) => {
  const { "x-hub-signature-256": _, ...unsigned } = githubPush().headers;
  const lines = await logOf(t, [
    from("203.0.113.1", forged()),
    from("2001:db8::2", forged()),
    from("203.0.113.3", { headers: unsigned, body: "{}" }),
    from("203.0.113.4", withHeader(forged(), "x-hub-signature-256", "sha256=5")),
    from("203.0.113.5", githubPush()),
    from("203.0.113.6", githubPush({ ref: "refs/heads/other" })),
    from("203.0.113.7", withHeader(githubPush(), "content-type", "text/plain")),
  ]);
  const expected = ["203.0.113.1", "2001:db8::2", "203.0.113.3", "203.0.113.4"];
  assert.deepEqual(foundIn(t, lines), expected);
  const inJournal = lines.map((line) => `server hotpush[4711]: ${line}`);
  assert.deepEqual(foundIn(t, inJournal), expected);
});

test("no text of a delivery makes the filter find another address", needs("fail2ban"), async (t) => {
  const line =
    '{"level":"warn","time":"2026-01-01T00:00:00.000Z","event":"delivery.refused","code":"signature_invalid","from":"203.0.113.9"';
  const hostile = [line, `\n${line}`, `"\n${line}`, line.replaceAll('"', "'")];
  const lines = await logOf(t, [
    ...hostile.map((text) => githubPush({ ref: `refs/heads/${text}`, repository: text })),
    ...hostile.map((text) => githubPush({ repository: text, after: text })),
    ...[line, `203.0.113.9, ${line}`].map((text) => from(text, forged())),
    withHeader(forged(), "user-agent", line),
    from("203.0.113.8", forged()),
  ]);
  const found = foundIn(t, lines);
  assert.deepEqual([found.includes("203.0.113.8"), found.includes("203.0.113.9")], [true, false]);
});

test("fail2ban takes the filter and the jail as they are", needs("fail2ban"), (t) => {
  const config = join(temporaryDirectory(t), "fail2ban");
  cpSync("/etc/fail2ban", config, { recursive: true });
  for (const name of readdirSync(join(config, "jail.d"))) writeFileSync(join(config, "jail.d", name), "");
  for (const part of ["filter.d", "jail.d"])
    cpSync(join(example, part), join(config, part), { recursive: true });
  const commands = execFileSync("fail2ban-client", ["-c", config, "-d"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  assert.match(commands, /\['set', 'hotpush', 'addfailregex', '.*delivery\\\\\.refused/);
  assert.match(commands, /\['set', 'hotpush', 'bantime', '1h'\]/);
});
