import type { Scope } from "../../test/harness/temporary.ts";
import { isInstalled, webhook } from "../tools.ts";
import { startAdnanhWebhook } from "./adnanh-webhook.ts";
import { startBareNode } from "./bare-node.ts";
import { startHotpush } from "./hotpush.ts";
import type { Receiver } from "./receiver.ts";

/** Starts Hotpush and the installed programs that it is compared with. */
export async function startPeers(scope: Scope): Promise<readonly Receiver[]> {
  const peers = [await startHotpush(scope)];
  if (isInstalled(webhook)) peers.push(await startAdnanhWebhook(scope));
  peers.push(await startBareNode(scope));
  return peers;
}
