import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { testSecret } from "../../test/harness/delivery.ts";
import { freePort } from "../../test/harness/listen.ts";
import { type Scope, temporaryDirectory, writeScript } from "../../test/harness/temporary.ts";
import { launch, type Receiver } from "./receiver.ts";

/**
 * Starts adnanh/webhook with the rule from its manual for GitHub: signed by HMAC-SHA256 and a push to main. By
 * default it logs nothing.
 *
 * @param script the text of the script that it runs
 */
export async function startAdnanhWebhook(scope: Scope, script = "#!/bin/sh\n"): Promise<Receiver> {
  const directory = temporaryDirectory(scope);
  const scriptPath = writeScript(join(directory, "deploy.sh"), script);
  const hooksPath = join(directory, "hooks.json");
  writeFileSync(hooksPath, JSON.stringify([hookFor(scriptPath)]));
  const port = await freePort();
  return await launch(scope, {
    name: "adnanh/webhook",
    command: ["webhook", "-hooks", hooksPath, "-ip", "127.0.0.1", "-port", String(port)],
    port,
    hookPath: "/hooks/deploy",
    readyPath: "/",
    cwd: directory,
  });
}

function hookFor(scriptPath: string): object {
  const signed = {
    type: "payload-hmac-sha256",
    secret: testSecret,
    parameter: { source: "header", name: "X-Hub-Signature-256" },
  };
  const toMain = { type: "value", value: "refs/heads/main", parameter: { source: "payload", name: "ref" } };
  return {
    id: "deploy",
    "execute-command": scriptPath,
    "pass-arguments-to-command": [
      { source: "payload", name: "ref" },
      { source: "payload", name: "after" },
    ],
    "trigger-rule": { and: [{ match: signed }, { match: toMain }] },
  };
}
