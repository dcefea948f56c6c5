import type { Blueprint, Endpoint } from "./blueprint.ts";
import { removeContainer } from "./container.ts";
import type { Engine } from "./engine.ts";
import { inspectImage, tagImage } from "./image.ts";

/**
 * Makes a container by `blueprint` and does not start it. It has a name of its own, so that one that has taken the
 * name of the old one can stay until this one is there.
 *
 * @returns its id
 * @throws ProblemError `docker_refused` where the engine cannot make it; nothing is left then
 */
export async function recreateContainer(engine: Engine, blueprint: Blueprint): Promise<string> {
  const { name, hostConfig, networks } = blueprint;
  const [first, ...others] = inOrder(networks, hostConfig.NetworkMode);
  const answer = await engine.post(`/containers/create?name=${name}_${blueprint.id.slice(0, 12)}`, {
    ...blueprint.config,
    Image: await imageReference(engine, blueprint),
    HostConfig: hostConfig,
    NetworkingConfig: first && { EndpointsConfig: Object.fromEntries([first]) },
  });
  const { Id: id }: { readonly Id: string } = JSON.parse(answer.toString());
  try {
    // Engines before 25 take one network when a container is made.
    for (const [network, endpoint] of others) {
      const path = `/networks/${encodeURIComponent(network)}/connect`;
      await engine.post(path, { Container: id, EndpointConfig: endpoint });
    }
  } catch (error) {
    await removeContainer(engine, id).catch(() => {});
    throw error;
  }
  return id;
}

/** Gives a container that `recreateContainer` made the name of the old one, and starts it. */
export async function startRecreated(engine: Engine, id: string, { name }: Blueprint): Promise<void> {
  await engine.post(`/containers/${id}/rename?name=${name}`);
  await engine.post(`/containers/${id}/start`);
}

function inOrder(
  networks: Readonly<Record<string, Endpoint>>,
  first: string,
): readonly (readonly [string, Endpoint])[] {
  const isFirst = ([name]: readonly [string, Endpoint]) => name === first;
  return Object.entries(networks).sort((a, b) => Number(isFirst(b)) - Number(isFirst(a)));
}

/** By its old name, which may have been given to the version that failed; by its id where that cannot be. */
async function imageReference(engine: Engine, { image, imageName }: Blueprint): Promise<string> {
  if ((await inspectImage(engine, imageName))?.id === image) return imageName;
  if (imageName.includes("@") || imageName.startsWith("sha256:")) return image;
  await tagImage(engine, image, imageName);
  return imageName;
}
