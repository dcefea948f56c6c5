import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makePlace, type Place, probe, runInShell, setSettings, testBroken } from "../harness/doctor.ts";
import { type FakeGitHost, hostToken, startFakeGitHost } from "../harness/fake-git-host.ts";
import type { HostName } from "../harness/git-host-apis.ts";
import { launcher } from "../harness/hotpush.ts";
import type { Scope } from "../harness/temporary.ts";

const webhookUrl = "https://shop.example.org/webhook";
const push = { id: "2001", guid: "lost", event: "push", status: 502 };
const gitLabSecret = `whsec_${Buffer.alloc(32, "k").toString("base64")}`;

testBroken(
  (["github", "gitlab"] as const).map((name) => ({
    name: `a push that ${name} could not deliver`,
    check: "deliveries",
    severity: "warning",
    async breakIt(place, t) {
      const host = await startWatched(t, place, name);
      host.deliveries.push(push, { ...push, id: "2002", guid: "nobody", status: 0 });
      const { faults } = await probe(place, "deliveries");
      assert.match(
        faults[0]?.text ?? "",
        /push of 2026-11-25 20:00 UTC, not answered; push of .+, answered with 502/,
      );
    },
    async fix(place, { command = "" }) {
      const again = `${command?.replace(/^hotpush/, launcher)} --token-file ${tokenFileOf(place)}`;
      assert.equal((await runInShell(place, again)).code, 0);
    },
  })),
);

for (const status of [403, 500])
  test(`deliveries: a token that is answered with ${status} is no failure`, async (t) => {
    const place = makePlace(t);
    const host = await startWatched(t, place, "github");
    host.instead = () => ({ status, body: JSON.stringify({ message: hostToken }) });
    const found = await probe(place, "deliveries");
    assert.equal(found.outcome, "skipped");
    assert.ok(!JSON.stringify(found).includes(hostToken));
  });

test("deliveries: skipped at a host without a log, without a webhook, without a token", async (t) => {
  const place = makePlace(t);
  const skipped = async () => assert.equal((await probe(place, "deliveries")).outcome, "skipped");
  await skipped();
  const gitea = await startWatched(t, place, "gitea");
  await skipped();
  assert.deepEqual(gitea.calls, []);
  (await startWatched(t, place, "gitlab")).hooks.length = 0;
  await skipped();
});

async function startWatched(scope: Scope, place: Place, name: HostName): Promise<FakeGitHost> {
  const host = await startFakeGitHost(scope, name);
  host.hooks.push({ id: "1001", url: webhookUrl, secret: "x" });
  writeFileSync(tokenFileOf(place), `${hostToken}\n`, { mode: 0o600 });
  setSettings(place, {
    COMMIT_STATUS_URL: host.address,
    COMMIT_STATUS_TOKEN_FILE: tokenFileOf(place),
    WEBHOOK_URL: webhookUrl,
    WEBHOOK_SECRET: gitLabSecret,
  });
  return host;
}

function tokenFileOf(place: Place): string {
  return join(place.root, "token");
}
