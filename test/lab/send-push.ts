/** A post-receive hook: sends a signed delivery for each pushed ref to `<url> <path>`, as a git host does. */
import { createInterface } from "node:readline";
import { deliver, githubPush } from "../harness/delivery.ts";

const [, , url = "", path] = process.argv;
for await (const line of createInterface({ input: process.stdin })) {
  const [before = "", after = "", ref = ""] = line.split(" ");
  const { status, json } = await deliver(url, githubPush({ ref, before, after }), path);
  console.log(`${ref} ${status} ${JSON.stringify(json)}`);
}
