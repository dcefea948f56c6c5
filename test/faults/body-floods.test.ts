import assert from "node:assert/strict";
import { test } from "node:test";
import { type Delivery, deliver, githubPush, withHeader } from "../harness/delivery.ts";
import { badlySigned, startFlood } from "../harness/flood.ts";
import { memoryOf } from "../harness/processes.ts";
import { type RunningService, startService } from "../harness/service.ts";

const clients = 3_000;
/** The limit for a flood of `clients`: about 15 KiB per connection, and 96 MiB for all bodies. */
const mostMoreBytes = 128 * 1024 ** 2;
/** Git hosts hang up after this time. */
const senderPatienceMs = 10_000;

/** Sends a push on a connection of its own. @returns how long it took */
async function push(service: RunningService, delivery: Delivery): Promise<number> {
  const { body } = delivery;
  const startMs = performance.now();
  const { status } = await deliver(service.url, withHeader(delivery, "connection", "close"));
  assert.equal(status, 202, `a push of ${body.length} bytes`);
  const tookMs = performance.now() - startMs;
  assert(tookMs < senderPatienceMs, `a push of ${body.length} bytes took ${tookMs} ms`);
  return tookMs;
}

const large = badlySigned(20_000_000);
const small = badlySigned(1_000_000);

for (const [what, flood] of [
  ["announce a large body and send nothing of it", { text: large }],
  ["send a byte of a large body each second", { text: large, spaces: 1, dripMs: 1_000 }],
  [
    "stop after 64 KiB of a large body, 250 a second",
    { text: large, spaces: 65_536, clients: 1_500, openEveryMs: 4 },
  ],
  ["stop after 60 kB of a small body", { text: small, spaces: 60_000 }],
] as const) {
  test(`pushes get in, and memory is bounded, while thousands ${what}`, async (t) => {
    const env = { NODE_OPTIONS: "--max-semi-space-size=4", MALLOC_ARENA_MAX: "1" };
    const service = await startService(t, { env });
    await push(service, githubPush());
    const { residentBytes } = memoryOf(service.child.pid);
    const { opened } = await startFlood(
      t,
      { clients, reopenMs: 5_000, ...flood, port: service.port },
      "clients" in flood ? flood.clients : clients,
    );
    const small: number[] = [];
    // Until the first connections have been replaced: by then the flood holds as much as it can.
    const first = opened();
    while (opened() < first + 100) small.push(await push(service, githubPush()));
    const { peakBytes } = memoryOf(service.child.pid);
    const moreBytes = peakBytes - residentBytes;
    const largePush = () => githubPush({ padding: "x".repeat(25_000_000) });
    const largeMs = [await push(service, largePush()), await push(service, largePush())];
    t.diagnostic(
      `${small.length} small pushes, ${Math.round(Math.max(...small))} ms at most; large ones ${largeMs.map(Math.round).join(", ")} ms; ${moreBytes >> 20} MiB more, with large ones ${memoryOf(service.child.pid).peakBytes >> 20} MiB in all`,
    );
    assert(moreBytes < mostMoreBytes, `${moreBytes} bytes more`);
  });
}
