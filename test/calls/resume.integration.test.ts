import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { openCall, readEvents } from "../../src/calls/client.ts";
import type { ControlEvent, LineJson } from "../../src/calls/shapes.ts";
import { logBytes, logPath } from "../../src/runner/log-file.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { startAnswering } from "../harness/hotpush.ts";
import { readLog, untilDeployment } from "../harness/records.ts";

/** Prints while it is followed; the sleeps let it be cut off in the middle. */
const script = `#!/bin/sh
echo "==> Pull"
for n in $(seq 1 60); do printf 'line %s é' $n; sleep 0.01; echo ' end'; done
echo "==> Build"
printf 'no line end'
`;

test("a reader that is cut off again and again gets each line once", async (t) => {
  const { url, statePath } = await startAnswering(t, { script });
  await deliver(url, githubPush());
  const seen: LineJson[] = [];
  let last: ControlEvent | null = null;
  while (last?.event !== "deployment" || last.deployment.state === "running") {
    const place = seen.at(-1)?.endByte ?? 0;
    for await (const event of eventsFrom(statePath, place)) {
      last = event;
      if (event.event === "line") seen.push(event);
      if (event.event === "line" && Math.random() < 0.2) break;
    }
  }
  assert.equal(seen.map(({ line }) => `${line}\n`).join(""), readLog(statePath, 1));
  assert.equal(seen.at(-1)?.endByte, logBytes(logPath(statePath, 1)));
});

test("each line has the time at which it was printed, live and later", async (t) => {
  const { url, statePath } = await startAnswering(t, {
    script: "#!/bin/sh\necho one\nsleep 0.4\necho two\n",
  });
  await deliver(url, githubPush());
  const live = await linesFrom(statePath, 0, true);
  const later = await linesFrom(statePath, 0);
  for (const lines of [live, later]) {
    const [one, two] = lines.map(({ printedAt }) => Date.parse(printedAt ?? ""));
    assert.ok(two !== undefined && one !== undefined && two - one >= 300, `${one} ${two}`);
  }
});

test("a log is given as it was printed, and as it is stored", async (t) => {
  const { url, statePath } = await startAnswering(t, { script: "#!/bin/sh\nprintf 'one\\nTwo\\nthree'\n" });
  await deliver(url, githubPush());
  await untilDeployment(statePath, 1, ({ state }) => state === "succeeded");
  const read = async (format?: "timed") => text(await openCall(statePath, "log", { id: 1, format }));
  assert.equal(await read(), "one\nTwo\nthree\n");
  assert.equal(await read("timed"), readFileSync(logPath(statePath, 1), "utf8"));
});

function eventsFrom(statePath: string, endByte: number, isFollowing = true) {
  const { signal } = new AbortController();
  return readEvents(statePath, { id: 1, isFollowing, from: endByte, signal });
}

async function linesFrom(statePath: string, endByte: number, isFollowing = false) {
  const events = await Array.fromAsync(eventsFrom(statePath, endByte, isFollowing));
  return events.filter((event) => event.event === "line");
}
