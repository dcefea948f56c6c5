import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { readPublicKey, signersLine, verifyReceipt } from "#deployments/receipt";
import { keyFingerprint } from "#platform/ssh-signature";
import { CommandError } from "#problems";
import { type CommandContext, deploymentId, newCommand, print, projectOption, refuse } from "./command.ts";
import { accessService, type ProjectChoice } from "./service-access.ts";

export const commands = { receipt: makeReceiptCommand, verify: makeVerifyCommand };

/** `hotpush receipt`: the receipt as the server signs it, to the byte. */
function makeReceiptCommand({ env, finish }: CommandContext): Command {
  const description =
    "Print the signed receipt of the last deployment, or of the one with this number: what it made live, when, and how many requests failed (docs/receipts.md).";
  return newCommand("receipt", description, ["hotpush receipt 7 >receipt.json   of deployment 7"])
    .argument("[id]", "the number of a deployment", deploymentId)
    .addOption(projectOption())
    .action(async (id: number | undefined, options: ProjectChoice) => {
      print(JSON.stringify(await accessService(env, options).call("receipt", { id: id ?? "latest" })));
      finish(0);
    });
}

interface VerifyOptions {
  readonly key?: string;
  readonly showKey?: boolean;
}

/** `hotpush verify`: whether a receipt is as its server signed it, and what that proves. */
function makeVerifyCommand({ env, finish }: CommandContext): Command {
  const description =
    "Verify that a receipt is, to the byte, what the server has signed, and say what that proves (docs/receipts.md). The exit code is 1 if it is not.";
  return newCommand("verify", description, [
    "hotpush verify receipt.json                     as root, with its own key",
    "hotpush verify --show-key >hotpush.keys         keep its key",
    "hotpush verify receipt.json --key hotpush.keys  without the server",
  ])
    .argument("[receipt]", "the file")
    .option("--key <file>", "the public key of the server; default: ask the server")
    .option("--show-key", "print that key, as ssh-keygen -Y verify reads it")
    .action(async (path: string | undefined, { key, showKey }: VerifyOptions, command: Command) => {
      if (path === undefined && !showKey) command.error("error: name the file of the receipt, or --show-key");
      const publicKey = await findKey(key, env);
      if (showKey) print(signersLine(publicKey));
      finish(path === undefined ? 0 : await verify(path, publicKey));
    });
}

/** @param path a file that has it; undefined: the server is asked */
async function findKey(path: string | undefined, env: NodeJS.ProcessEnv): Promise<string> {
  if (path === undefined)
    return (await accessService(env, { directory: null }).call("receiptKey", {})).publicKey;
  const key = readPublicKey(await readFile(path, "utf8"));
  if (key !== null) return key;
  throw new CommandError(`${path} has no key of a server. On the server: hotpush verify --show-key`);
}

async function verify(path: string, publicKey: string): Promise<number> {
  const statement = await verifyReceipt(await readFile(path, "utf8"), publicKey);
  const key = keyFingerprint(publicKey);
  if (statement === null)
    return refuse(`${path} is not a receipt that the key ${key} has signed, or it was changed since.`);
  const { deployment, project, commit, signer, requests, liveAt, endedAt } = statement.predicate;
  const signed = signer === null ? "" : `, signed by ${signer}`;
  const number = (count: number) => count.toLocaleString("en-US");
  const failed =
    requests === null
      ? "no requests were counted"
      : `${number(requests.failed)} of ${number(requests.counted)} requests failed`;
  print(
    `Proven: the server with the key ${key} has signed this, and nothing was changed since.`,
    `It says: deployment ${deployment} of ${project} made ${commit}${signed} live at ${liveAt ?? endedAt}; ${failed}.`,
    "Not proven: that what it says is true. It is the server's own word.",
  );
  return 0;
}
