import { randomBytes } from "node:crypto";
import { request } from "node:http";

/**
 * A process of its own: `node flood.ts <url> <clients> <bytes>`. Each client sends one large body with a well-formed
 * but wrong signature, all of them at the same time. Prints at the end, as JSON, how many got which answer.
 */
const [url = "", clients = "500", bytes = String(25 * 1024 ** 2)] = process.argv.slice(2);
const body = Buffer.alloc(Number(bytes), "x");
const answers: Record<string, number> = {};

await Promise.all(Array.from({ length: Number(clients) }, sendOne));
console.log(JSON.stringify(answers));

function sendOne(): Promise<void> {
  return new Promise((resolve) => {
    const headers = {
      "content-type": "application/json",
      "content-length": body.length,
      "x-github-event": "push",
      "x-hub-signature-256": `sha256=${randomBytes(32).toString("hex")}`,
    };
    const outgoing = request(url, { method: "POST", headers, agent: false });
    const conclude = (answer: string) => {
      answers[answer] = (answers[answer] ?? 0) + 1;
      outgoing.destroy();
      resolve();
    };
    outgoing.once("response", (response) => conclude(String(response.statusCode)));
    outgoing.once("error", () => conclude("cut off"));
    outgoing.end(body);
  });
}
