import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { secretFault } from "../config/secret.ts";
import type { Environment } from "../config/settings.ts";
import { namingFiles } from "../platform/compose/commands.ts";
import { composeFile, ownComposeFile } from "./compose-file.ts";
import { type Setting, withoutOtherValues, withSettings } from "./dotenv-file.ts";
import { type GitHost, payloadName } from "./git-host.ts";
import type { Machine } from "./machine.ts";
import { ownImage, ownRoot } from "./own-image.ts";
import { type PlannedFile, planFile, type WantedFile } from "./planned-file.ts";
import type { SetupProject } from "./project.ts";
import { caddyfile, caddyfileName } from "./proxy-config.ts";
import type { ReverseProxy } from "./reverse-proxy.ts";
import { systemdUnit, systemdUnitName } from "./systemd-unit.ts";
import type { WebhookAddress } from "./webhook-address.ts";

export interface PlanOptions {
  readonly project: SetupProject;
  /** The proxy of a project that runs with compose; null: plain processes, under systemd. */
  readonly proxy: ReverseProxy | null;
  readonly address: WebhookAddress;
  readonly machine: Machine;
  readonly host: GitHost | null;
  /** Choices of a person that cannot be derived again. */
  readonly chosen: {
    readonly service: string | null;
    readonly host: GitHost | null;
    readonly isNewUrl: boolean;
  };
  /** Files that git should ignore and does not yet. */
  readonly unignored: readonly string[];
  /** Whether the project has a service called caddy. */
  readonly hasCaddy: boolean;
}

/** Every file of a project that is set up: the wanted text beside the present one. Nothing is written. */
export function planFiles(options: PlanOptions): readonly PlannedFile[] {
  const { project, proxy, unignored } = options;
  const settings = wantedSettings(options);
  const wanted: WantedFile[] = [
    {
      name: ".env",
      mode: 0o600,
      purpose: "the secret, and the values of this machine",
      make: (before) => withSettings(before ?? "", settings),
      shown: (text) => withoutOtherValues(text, settings),
    },
    ...(unignored.length === 0 ? [] : [ignoreFile(unignored)]),
    deployScript,
    ...(proxy === null ? [unitFile(options)] : composeFiles(options, proxy)),
  ];
  return wanted.map((file) => planFile(project.root, file));
}

function wantedSettings(options: PlanOptions): readonly Setting[] {
  const { project, proxy, address, machine, host, chosen } = options;
  const { root, env } = project;
  const open = (name: string, value: string | null) =>
    value === null ? [] : [{ name, value, isOpen: true }];
  const fixed = (name: string, value: string | null) =>
    value === null ? [] : [{ name, value, isOpen: false }];
  const byChoice = chosen.isNewUrl ? fixed : open;
  return [
    ...secretSetting(env, host),
    ...fixed("REPO_PATH", root),
    ...open("REPOSITORY", repositoryName(project, host)),
    ...open("BRANCH", project.branch),
    ...byChoice("WEBHOOK_URL", address.payloadUrl.href),
    ...(chosen.host === null ? [] : fixed("HOTPUSH_GIT_HOST", chosen.host)),
    ...(proxy === null ? [] : containerSettings(options, machine)),
    ...byChoice("SITE", address.site),
    ...(chosen.service === null ? [] : fixed("HOTPUSH_APP", chosen.service)),
    ...(proxy === null ? [] : fixed("COMPOSE_FILE", composeFileList(project))),
  ];
}

/** The setting of the secret. A valid one stays, and if a file holds it, there is none. */
export function secretSetting(
  { WEBHOOK_SECRET, WEBHOOK_SECRET_FILE }: Environment,
  host: GitHost | null,
): readonly Setting[] {
  if (WEBHOOK_SECRET_FILE) return [];
  const isGood = WEBHOOK_SECRET !== undefined && secretFault("WEBHOOK_SECRET", WEBHOOK_SECRET) === null;
  return [{ name: "WEBHOOK_SECRET", value: isGood ? WEBHOOK_SECRET : makeSecretText(host), isOpen: false }];
}

/** 32 random bytes; for GitLab in the form of Standard Webhooks, which a signing token there must have. */
function makeSecretText(host: GitHost | null): string {
  const bytes = randomBytes(32);
  return host === "gitlab" ? `whsec_${bytes.toString("base64")}` : bytes.toString("hex");
}

function containerSettings({ project }: PlanOptions, machine: Machine): readonly Setting[] {
  const { dockerSocket, dockerGroup, user, sshDirectory } = machine;
  const isUsual = dockerSocket === "/var/run/docker.sock";
  return [
    { name: "HOTPUSH_USER", value: user, isOpen: true },
    { name: "DOCKER_GID", value: String(dockerGroup), isOpen: false },
    ...(isUsual ? [] : [{ name: "DOCKER_SOCKET", value: dockerSocket, isOpen: false }]),
    ...(project.remote?.isSsh ? [{ name: "HOTPUSH_SSH", value: sshDirectory, isOpen: true }] : []),
  ];
}

/** The value of COMPOSE_FILE with our own file in it: absolute paths, so that it is the same from any working directory. */
export function composeFileList({ root, composeFiles: files, env }: SetupProject): string {
  return namingFiles([...files, join(root, ownComposeFile)], env);
}

/** `owner/name` as in the host's payload, so that no other repository with the secret deploys this one. */
export function repositoryName({ remote }: SetupProject, host: GitHost | null): string | null {
  const name = payloadName(remote?.path ?? "", host);
  return /^[\w.~-]+(\/[\w.~-]+)+$/.test(name) ? name : null;
}

function ignoreFile(names: readonly string[]): WantedFile {
  return {
    name: ".gitignore",
    mode: null,
    purpose: `${names.join(" and ")} ${names.length === 1 ? "stays" : "stay"} out of git`,
    make: (before) =>
      withLines(
        before ?? "",
        names.map((name) => `/${name}`),
      ),
  };
}

/** The text with `lines` at its end. */
export function withLines(text: string, lines: readonly string[]): string {
  const kept = text.replace(/\n*$/, "");
  return [...(kept === "" ? [] : [kept]), ...lines, ""].join("\n");
}

/** The deploy script; one that is there stays. */
export const deployScript: WantedFile = {
  name: "deploy.sh",
  mode: 0o755,
  purpose: "pulls, builds, replaces, checks; yours to change",
  make: (before) => before ?? readFileSync(join(ownRoot, "examples/deploy.sh"), "utf8"),
};

function composeFiles(options: PlanOptions, proxy: ReverseProxy): readonly WantedFile[] {
  const { project, address, machine, hasCaddy } = options;
  const isDirectory = project.remote === null && project.remoteUrl !== null;
  const text = composeFile({
    proxy,
    payloadUrl: address.payloadUrl,
    image: ownImage,
    hasCertificate: address.hasCertificate,
    isSsh: project.remote?.isSsh ?? false,
    home: machine.home,
    hasSigners: Boolean(project.env.ALLOWED_SIGNERS),
    localRemote: isDirectory ? (project.remoteUrl ?? "").replace(/^file:\/\//, "") : null,
    proxyName: hasCaddy ? "hotpush-caddy" : "caddy",
  });
  const compose: WantedFile = {
    name: ownComposeFile,
    mode: null,
    purpose: proxy.kind === "new-caddy" ? `Hotpush, and Caddy before ${proxy.service}` : "Hotpush",
    make: () => text,
  };
  if (proxy.kind !== "new-caddy") return [compose];
  return [
    compose,
    {
      name: caddyfileName,
      mode: null,
      purpose: "Caddy's configuration",
      make: () => caddyfile(proxy),
    },
  ];
}

function unitFile({ project }: PlanOptions): WantedFile {
  return {
    name: systemdUnitName,
    mode: null,
    purpose: "Hotpush as a service of this machine",
    make: () => systemdUnit(project.root),
  };
}
