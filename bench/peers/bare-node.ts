import { join } from "node:path";
import { testSecret } from "../../test/harness/delivery.ts";
import { freePort } from "../../test/harness/listen.ts";
import { type Scope, temporaryDirectory } from "../../test/harness/temporary.ts";
import { compileCache } from "./hotpush.ts";
import { launch, type Receiver } from "./receiver.ts";

/** Starts bare.ts, the minimal receiver on Node. */
export async function startBareNode(scope: Scope): Promise<Receiver> {
  const port = await freePort();
  return await launch(scope, {
    name: "bare node:http",
    command: [process.execPath, join(import.meta.dirname, "bare.ts")],
    port,
    hookPath: "/",
    readyPath: "/",
    cwd: temporaryDirectory(scope),
    env: { NODE_COMPILE_CACHE: compileCache, PORT: String(port), SECRET: testSecret },
  });
}
