import { ownEnvFile } from "../compose-file.ts";
import type { OldSetup } from "./old-setup.ts";

/** The longest time for which nothing may listen on the ports while they change hands. */
export const longestGapMs = 3_000;

/** Describes what moving a project to the machine part does beside changing files, for a person who decides about it. */
export function describeMove(old: OldSetup, project: string): readonly string[] {
  const { hotpush, caddy, ports, volumes } = old;
  const names = [hotpush, caddy].flatMap((one) => (one === null ? [] : [one.name]));
  const numbers = [...new Set(ports.map(({ port }) => port))].join(" and ");
  const hasGap = caddy !== null && ports.length > 0;
  const gap = `While Caddy of the machine part takes over ${numbers}, nothing answers there, for at most ${longestGapMs / 1_000} s; a request that takes longer than a second is cut off. Your containers are not restarted.`;
  return [
    `This project has a Hotpush of its own, made by an earlier version. It becomes the project ${project} of the machine part, with its history, logs, good versions, secret and certificates. Deployments get new numbers if another project has theirs.`,
    ...(hasGap ? [gap] : []),
    "Nothing changes at the git host: it sends to the same address, with the same secret.",
    ...(names.length === 0 ? [] : [`Stopped and removed at the end: ${names.join(", ")}.`]),
    ...(volumes.length === 0 ? [] : [`Kept: the volumes ${volumes.join(", ")}.`]),
    "Deployments wait meanwhile. If the site does not answer as before, everything goes back.",
  ];
}

/** What a person should know after the move. */
export function describeMoved(
  { volumes, settings, scriptEnv }: OldSetup,
  {
    project,
    gapMs,
    imported,
  }: { readonly project: string; readonly gapMs: number | null; readonly imported: number },
): readonly string[] {
  const copied = Object.keys(settings).filter((name) => !name.startsWith("WEBHOOK_"));
  const gap = gapMs === null ? "" : ` The ports changed hands in ${(gapMs / 1_000).toFixed(1)} s.`;
  const added = imported === 0 ? "" : `: ${imported} deployments`;
  return [
    `${project} is on the machine part, with its history${added}.${gap}`,
    "The present containers go on as they are; the next deployment starts new ones as the compose files say now.",
    ...(copied.length === 0
      ? []
      : [`${copied.join(", ")} count in projects/${project}.env now, no longer in .env.`]),
    ...(scriptEnv === null ? [] : [`What is in ${ownEnvFile} counts in secrets/${project}.env now.`]),
    ...(volumes.length === 0
      ? []
      : [`When you are content, remove the old volumes: docker volume rm ${volumes.join(" ")}`]),
  ];
}
