import { openStore } from "../../src/deployments/store.ts";

/** A child process that opens the state directory it is told, at the very time it is told, and says what became of it. */
process.on("message", ({ directory, atMs }: { directory: string; atMs: number }) => {
  while (Date.now() < atMs);
  try {
    openStore(directory).close();
    process.send?.("opened");
  } catch (error) {
    process.send?.(String(error));
  }
});
process.send?.("ready");
