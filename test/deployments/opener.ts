import { openDefault } from "../harness/store.ts";

/** A child process that opens a given state directory at a given time, and reports the result. */
process.on("message", ({ directory, atMs }: { directory: string; atMs: number }) => {
  while (Date.now() < atMs);
  try {
    openDefault(directory).close();
    process.send?.("opened");
  } catch (error) {
    process.send?.(String(error));
  }
});
process.send?.("ready");
