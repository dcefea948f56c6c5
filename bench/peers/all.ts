import type { Scope } from "../../test/harness/temporary.ts";
import { isInstalled, webhook } from "../tools.ts";
import { startAdnanhWebhook } from "./adnanh-webhook.ts";
import { startBareNode } from "./bare-node.ts";
import { startHotpush } from "./hotpush.ts";
import type { Receiver } from "./receiver.ts";

/** Starts Hotpush and all it is compared with, as far as that is installed. */
export async function startPeers(scope: Scope): Promise<readonly Receiver[]> {
  const peers = [await startHotpush(scope)];
  if (isInstalled(webhook)) peers.push(await startAdnanhWebhook(scope));
  peers.push(await startBareNode(scope));
  return peers;
}
