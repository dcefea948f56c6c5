import assert from "node:assert/strict";
import { test } from "node:test";
import { deliver, githubPush, withHeader } from "../harness/delivery.ts";
import { badlySigned, startFlood } from "../harness/flood.ts";
import { memoryOf } from "../harness/processes.ts";
import { type RunningService, startService } from "../harness/service.ts";

const clients = 3_000;
/** The limit for a flood of `clients`: about 15 KiB per connection, and 96 MiB for all bodies. */
const mostMoreBytes = 128 * 1024 ** 2;
/** Git hosts hang up after this time. */
const senderPatienceMs = 10_000;

/** Sends a push on a connection of its own. */
async function push({ url }: RunningService, padding = ""): Promise<void> {
  const startMs = performance.now();
  const { status } = await deliver(url, withHeader(githubPush({ padding }), "connection", "close"));
  assert.equal(status, 202, `a push with ${padding.length} bytes more`);
  const tookMs = performance.now() - startMs;
  assert(tookMs < senderPatienceMs, `a push with ${padding.length} bytes more took ${tookMs} ms`);
}

const large = badlySigned(20_000_000);
const small = badlySigned(1_000_000);

for (const [what, flood] of [
  ["announce a large body and send nothing of it", { text: large }],
  ["send a byte of a large body each second", { text: `${large} `, dripMs: 1_000 }],
  [
    "stop after 64 KiB of a large body, 250 a second",
    { text: large + " ".repeat(65_536), clients: 1_500, openEveryMs: 4 },
  ],
  ["stop after 60 kB of a small body", { text: small + " ".repeat(60_000) }],
] as const) {
  test(`pushes get in, and memory is bounded, while thousands ${what}`, async (t) => {
    const env = { NODE_OPTIONS: "--max-semi-space-size=4", MALLOC_ARENA_MAX: "1" };
    const service = await startService(t, { env });
    await push(service);
    const { residentBytes } = memoryOf(service.child.pid);
    const opened = await startFlood(t, { clients, ...flood, port: service.port });
    // Until the first connections have been replaced: by then the flood holds as much as it can.
    const first = opened();
    while (opened() < first + 100) await push(service);
    const { peakBytes } = memoryOf(service.child.pid);
    const moreBytes = peakBytes - residentBytes;
    t.diagnostic(`${moreBytes >> 20} MiB more`);
    for (let count = 0; count < 2; count += 1) await push(service, "x".repeat(25_000_000));
    assert(moreBytes < mostMoreBytes, `${moreBytes} bytes more`);
  });
}
