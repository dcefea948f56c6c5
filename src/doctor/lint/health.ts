import { warning } from "../check.ts";
import type { Scene } from "../scene.ts";
import { lintCheck } from "./lint-check.ts";

/** Without one, a container counts as ready when it ran for 3 s, whether it answers or not. */
export const healthcheckLint = lintCheck(
  "lint-healthcheck",
  "every app says when it is ready",
  "every app has a health check",
  async ({ apps, model }, scene) => {
    const faults = await Promise.all(
      apps.map(async ({ name, service }) => {
        const { healthcheck, image = `${model.name}-${name}` } = service;
        if (healthcheck && !healthcheck.disable) return [];
        if (!healthcheck?.disable && (await imageHasOne(image, scene))) return [];
        const text = `${name} has no health check: requests go to a new container before it can answer them. For example, in ${name}:`;
        const change = `services.${name}.healthcheck: {test: ["CMD", "curl", "-f", "http://localhost:8080/"], interval: 10s, start_period: 30s, start_interval: 500ms}`;
        return [warning(text, { change })];
      }),
    );
    return faults.flat();
  },
);

/** A HEALTHCHECK of its Dockerfile does as well, where the image is here already. */
async function imageHasOne(image: string, { engine }: Scene): Promise<boolean> {
  const answer = await engine();
  if (answer.kind !== "answers") return false;
  try {
    const { Config }: { readonly Config: { readonly Healthcheck?: unknown } } = JSON.parse(
      (await answer.engine.get(`/images/${encodeURIComponent(image)}/json`)).toString(),
    );
    return Config.Healthcheck !== undefined && Config.Healthcheck !== null;
  } catch {
    return false;
  }
}
