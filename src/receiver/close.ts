import type { Server } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

/** A turn of the loop that takes longer had something to do: others may have connected meanwhile. */
const quietTurnMs = 0.5;
const longestWaitMs = 500;

/**
 * Stops listening and gives those who are connected `lastAnswersMs` to be answered.
 *
 * Where a listening socket is closed, the kernel resets the connections that it has taken and that nobody has accepted
 * yet; git hosts send such a delivery no second time. So it is closed at the end of a turn of the loop that did hardly
 * anything but accept.
 */
export async function closeReceiver(receiver: Server, lastAnswersMs: number): Promise<void> {
  await quietTurn();
  const closed = new Promise((resolve) => receiver.close(resolve));
  await Promise.race([closed, pause(lastAnswersMs, null, { ref: false })]);
  receiver.closeAllConnections();
  await closed;
}

async function quietTurn(): Promise<void> {
  const startMs = performance.now();
  for (let turnMs = startMs; ; turnMs = performance.now()) {
    await new Promise(setImmediate);
    const nowMs = performance.now();
    const isWholeTurn = turnMs !== startMs;
    if ((isWholeTurn && nowMs - turnMs < quietTurnMs) || nowMs - startMs > longestWaitMs) return;
  }
}
