import { type Container, stopContainer } from "../../platform/docker/container.ts";
import { waitReady } from "../../platform/docker/health.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { checkThroughProxy } from "../proxy/check-through-proxy.ts";
import { timed } from "../report/report.ts";
import { abandon } from "./abandon.ts";
import { explainBadAnswer } from "./explain-bad-answer.ts";

/**
 * The check through a proxy of which nobody knows that it reads a live file: it asks the old containers too, until they
 * have stopped. Where the new ones then answer badly, the old ones are started again.
 *
 * @param switchBack sends the traffic to the old ones, in so far as a live file does
 * @throws ProblemError `proxy_check_failed`; the old ones serve again, and the new ones are gone
 */
export async function proveAlone(
  rollout: Rollout,
  service: Service,
  old: readonly Container[],
  fresh: readonly Container[],
  switchBack: () => Promise<void>,
): Promise<void> {
  if (service.checkUrl === null) return;
  const { engine, report } = rollout;
  const names = old.map(({ name }) => name).join(", ");
  const stop = () => Promise.all(old.map((one) => stopContainer(engine, one, Number.POSITIVE_INFINITY)));
  await timed(report, service.name, "stop", stop, () => `${names} stopped`);
  try {
    await checkThroughProxy(rollout, service);
  } catch (error) {
    const startAgain = () => Promise.all(old.map((one) => start(rollout, service, one)));
    await timed(report, service.name, "roll back", startAgain, () => `${names} started again`);
    await switchBack();
    const explained = await explainBadAnswer(rollout, fresh, error);
    await abandon(rollout, service, fresh);
    throw explained;
  }
}

async function start({ engine }: Rollout, { healthyTimeoutMs }: Service, { id }: Container): Promise<void> {
  await engine.post(`/containers/${id}/start`);
  await waitReady(engine, id, healthyTimeoutMs);
}
