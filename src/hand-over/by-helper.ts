import type { Engine } from "../platform/docker/engine.ts";
import type { OwnService } from "../rollout/own-container/own-service.ts";
import {
  type Helper,
  type ReplacementRequest,
  removeReplacementRequest,
} from "../rollout/own-container/replacement-request.ts";
import { engineOf, giveUp, type HandOverContext } from "./context.ts";

/** Has a helper container put the new one in the place of this one. Returns only where that fails. */
export async function replaceByHelper(
  context: HandOverContext,
  engine: Engine,
  own: OwnService,
  request: ReplacementRequest,
  helper: Helper,
): Promise<void> {
  const { seeHelperOff, startHelper } = await import("../rollout/own-container/helper.ts");
  const fields = { event: "service.helper", helper: helper.name };
  context.log.info(fields, `${helper.name} replaces this container`);
  await startHelper(engine, own, helper, context.scriptEnv);
  const ending = await seeHelperOff(engine, helper.name);
  const lines = context.redact(ending?.lines.join("\n") ?? "");
  const exitCode = ending?.exitCode ?? "unknown";
  giveUp(
    context,
    request,
    `${helper.name} ended with exit code ${exitCode} and did not replace it:\n${lines}`,
  );
}

/** In the new container: tells what the helper did, and clears it away. */
export async function concludeHelper(
  context: HandOverContext,
  request: ReplacementRequest,
  helper: Helper,
): Promise<void> {
  const { seeHelperOff } = await import("../rollout/own-container/helper.ts");
  const ending = await seeHelperOff(await engineOf(context), helper.name);
  removeReplacementRequest(context.statePath, request);
  if (ending === null) return;
  const fields = { event: "service.helper_ended", helper: helper.name, exitCode: ending.exitCode };
  const lines = context.redact(ending.lines.join("\n"));
  const text = `${helper.name} ended with exit code ${ending.exitCode}:\n${lines}`;
  if (ending.exitCode === 0) context.log.info(fields, text);
  else context.log.error(fields, text);
}
