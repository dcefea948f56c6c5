import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { signIn, startPage } from "../../harness/page.ts";
import { startService } from "../../harness/service.ts";

const directory = new URL("../../../src/front/page/assets/", import.meta.url);

test("the history leads on to each older deployment, once, and no screen weighs 50 KB", async (t) => {
  const service = await startService(t);
  const ann = await signIn(await startPage(t, service), service);
  for (let count = 0; count < 45; count += 1) await deliver(service.url, githubPush());
  const seen: number[] = [];
  for (let path: string | undefined = "/projects/default"; path !== undefined; ) {
    const { text } = await ann.get(path);
    seen.push(...[...text.matchAll(/"what"><a href="\/deployments\/(\d+)"/g)].map(([, id]) => Number(id)));
    path = /href="([^"]+)">Older</.exec(text)?.[1];
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 45 }, (_, index) => 45 - index),
  );
  // All of them, because scripts load others.
  const assets = readdirSync(directory).map((name) => readFileSync(new URL(name, directory), "utf8"));
  for (const path of ["/", "/projects/default", "/deployments/45"]) {
    const { text } = await ann.get(path);
    const bytes = [text, ...assets].reduce((sum, one) => sum + gzipSync(one).length, 0);
    t.diagnostic(`${path}: ${bytes} bytes`);
    assert.ok(bytes < 50_000, `${path}: ${bytes} bytes`);
  }
});
