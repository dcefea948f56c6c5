import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after } from "node:test";
import fc from "fast-check";
import { statusHosts } from "../../src/config/git-hosts.ts";
import { makeSecret } from "../../src/config/secret.ts";
import { spooledIdOf } from "../../src/deployments/push.ts";
import { maxNameChars, readHostChecks } from "../../src/notifications/host-checks.ts";
import { listForeignDirectory } from "../../src/platform/foreign-files.ts";
import { maxTextChars, readCommit, readRemoteHead } from "../../src/platform/git.ts";
import { makeRepository } from "../harness/repository.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { fuzz } from "./fuzz.ts";

const scope = { after };
const { env } = process;
const repository = makeRepository(scope);
const head = repository.commit();
const tree = repository.git("rev-parse", "HEAD^{tree}");

/** Bytes as an enemy would choose them: what steers a terminal, ends a line or a text, or is no UTF-8. */
const bytes = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map((some) => Buffer.from(some)),
      fc.constantFrom("\x1b[2J", "\x1b]0;", "\x07", "\r", "\t", "\n", "commit ", "%x00", "ä", "\u202e", head),
      fc.tuple(fc.constantFrom("\x1b", "a", "\x9b", "€"), fc.nat(4_000)).map(([one, n]) => one.repeat(n)),
    ),
    { maxLength: 12 },
  )
  .map((parts) => Buffer.concat(parts.map((part) => Buffer.from(part))));

/** No control character but a blank, and no mark that turns the direction of text. */
const isPlain = (text: string) => !/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(text);

fuzz(
  "a commit of any bytes is read as bounded, printable texts",
  fc.asyncProperty(bytes, bytes, async (author, message) => {
    const before = Buffer.from(`tree ${tree}\nauthor `);
    const by = Buffer.from(author.filter((one) => one !== 0 && one !== 10));
    const rest = Buffer.from(
      " <a@example.com> 1700000000 +0000\ncommitter A <a@example.com> 1700000000 +0000\n\n",
    );
    const args = ["hash-object", "-t", "commit", "-w", "--stdin", "--literally"];
    const input = Buffer.concat([before, by, rest, message]);
    const id = execFileSync("git", args, { cwd: repository.directory, input, encoding: "utf8" }).trim();
    const read = await readCommit(repository.directory, id, { user: null, env });
    assert.equal(read?.id, id);
    for (const text of [read.subject, read.author]) {
      assert.ok(text.length <= maxTextChars + 1, String(text.length));
      assert.ok(isPlain(text), JSON.stringify(text));
    }
  }),
  150,
);

const sayPath = join(temporaryDirectory(scope), "said");
const sshPath = writeScript(
  join(temporaryDirectory(scope), "ssh"),
  `#!/bin/sh\ncat '${sayPath}' "$0" >&2\ncat '${sayPath}'\n`,
);
/** As git's protocol frames a line. */
const framed = (line: Buffer) =>
  Buffer.concat([Buffer.from((line.length + 4).toString(16).padStart(4, "0")), line]);
const kinds = new Set<string>();
const refLine = fc
  .tuple(
    fc.constantFrom(head, "0".repeat(40), "-x"),
    fc.constantFrom("refs/heads/main", "a/refs/heads/main", "HEAD"),
  )
  .map(([id, name]) => framed(Buffer.from(`${id} ${name}\n`)));
const answer = fc
  .array(
    fc.oneof(
      bytes,
      bytes.filter(({ length }) => length < 60_000).map(framed),
      refLine,
      fc.constant(Buffer.from("0000")),
    ),
  )
  .map((parts) => Buffer.concat(parts));

fuzz(
  "whatever a remote answers is a commit or a short reason",
  fc.asyncProperty(answer, async (said) => {
    writeFileSync(sayPath, said);
    const environment = {
      PATH: env.PATH ?? "",
      GIT_SSH_COMMAND: sshPath,
      DEPLOY_REMOTE: "git@host.test:a/b",
    };
    const checkout = { repoPath: repository.directory, environment, user: null };
    const read = await readRemoteHead(
      { ...checkout, redactor: () => ({ text: (text) => text }) },
      "refs/heads/main",
    );
    kinds.add(read.kind);
    if (read.kind === "head") assert.match(read.commit, /^[0-9a-f]{40}$/);
    else assert.ok(read.detail.length < 2_000 && isPlain(read.detail), JSON.stringify(read.detail));
  }),
  100,
  1,
  () => assert.deepEqual([...kinds].sort(), ["head", "unknown"]),
);

const keys =
  "name context key status state conclusion app slug id values statuses check_runs check_suites next total_count";
const strange = fc.anything({ key: fc.oneof(fc.constantFrom(...keys.split(" ")), fc.string()), maxDepth: 4 });
const row = fc.record({
  name: fc.oneof(
    strange,
    fc.string(),
    fc.nat(2 ** 20).map((n) => "x".repeat(n)),
  ),
  context: fc.oneof(fc.string(), strange),
  status: fc.oneof(fc.constantFrom("success", "completed", "running"), strange),
  state: fc.oneof(fc.constantFrom("success", "SUCCESSFUL", "pending"), strange),
  conclusion: fc.oneof(fc.constantFrom("success", null, "failure"), strange),
});
const readings = new Set<string>();
const rows = fc.array(fc.oneof(row, strange), { maxLength: 5 });
const body = fc.oneof(
  rows,
  strange,
  fc.record({ statuses: rows, check_runs: rows, check_suites: rows, values: rows, next: strange }),
);

/** Gives one answer to all. */
let given = "";
const host = createServer((_request, response) => void response.end(given));
await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
after(() => host.close());
const url = new URL(`http://127.0.0.1:${(host.address() as AddressInfo).port}/octo/app`);

fuzz(
  "whatever a git host says of checks is read as such, with bounded names, or is a fault",
  fc.asyncProperty(fc.constantFrom(...statusHosts), body, async (kind, said) => {
    given = JSON.stringify(said) ?? "";
    const settings = { host: kind, url, token: makeSecret("a-token-of-a-host") };
    const reading = await readHostChecks(settings, head, "main", new AbortController().signal);
    readings.add(reading.kind);
    if (reading.kind === "fault") return assert.ok(reading.fault.length < 1_000, reading.fault);
    for (const { names, state } of reading.checks) {
      assert.ok(["pending", "succeeded", "skipped", "failed"].includes(state));
      for (const name of names) assert.ok(name.length <= maxNameChars + 20, String(name.length));
    }
  }),
  300,
  1,
  () => assert.deepEqual([...readings].sort(), ["checks", "fault"]),
);

const directory = temporaryDirectory(scope);
/** A name that the system takes, of any bytes. */
const fileName = fc
  .uint8Array({ minLength: 1, maxLength: 60 })
  .map((some) => Buffer.from(some.map((one) => (one === 0 || one === 47 ? 46 : one))))
  .filter((name) => !["", ".", ".."].includes(name.toString()));

fuzz(
  "a directory with names of any bytes is listed up to the bound, and none of them is a push",
  fc.property(fc.uniqueArray(fileName, { maxLength: 30, selector: String }), fc.nat(40), (names, most) => {
    for (const name of names) writeFileSync(Buffer.concat([Buffer.from(`${directory}/`), name]), "");
    const listed = listForeignDirectory(directory, most);
    assert.equal(listed.length, Math.min(most, names.length));
    for (const name of listed) {
      assert.ok(!name.includes("/"), name);
      assert.equal(spooledIdOf(name), null);
    }
    for (const name of readdirSync(directory, { encoding: "buffer" }))
      rmSync(Buffer.concat([Buffer.from(`${directory}/`), name]));
  }),
  300,
);
