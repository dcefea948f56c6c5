/**
 * The post-receive hook of the demo's git host: it delivers a webhook for each pushed ref, and prints what a git host
 * shows on its delivery page. git runs it in the bare repository, with one line per ref on standard input.
 */
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { deliver } from "./delivery.ts";
import { pushPayload } from "./push-payload.ts";

interface Webhook {
  readonly url: string;
  readonly secretPath: string;
}

const place = { path: process.cwd(), env: process.env };
const { url, secretPath } = JSON.parse(readFileSync("webhook.json", "utf8")) as Webhook;
const secret = readFileSync(secretPath, "utf8");

for (const line of (await text(process.stdin)).trim().split("\n")) {
  const [before = "", after = "", ref = ""] = line.split(" ");
  try {
    const payload = await pushPayload(place, { before, after, ref });
    const { status, body } = await deliver(url, secret, payload);
    // A busy service names the delivery in its answer. Sent again, it is a duplicate, which names its deployment.
    const isUnnamed = status === 202 && body.deployment === undefined;
    const { deployment } = isUnnamed ? (await deliver(url, secret, payload)).body : body;
    const outcome = deployment
      ? `deployment ${deployment.id} is ${deployment.state}`
      : (body.title ?? body.status);
    console.log(`webhook answered ${status}: ${outcome}`);
  } catch (error) {
    console.log(`webhook not delivered: ${String(error)}`);
  }
}
