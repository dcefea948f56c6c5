export interface RotatedSecret {
  /** Which file of settings was named, if one was. */
  readonly envFile: string | undefined;
  /** The file that it is in now. */
  readonly secretPath: string;
  /** The git host by which the old one was used last, where that is known. */
  readonly host: string | null;
  /** null: it is not to be shown */
  readonly secret: string | null;
  /** The host made it, so that it has it already. */
  readonly isGiven: boolean;
}

const titles: Readonly<Record<string, string>> = {
  github: "GitHub",
  gitea: "Gitea",
  forgejo: "Forgejo",
  gogs: "Gogs",
  gitlab: "GitLab",
  "bitbucket-cloud": "Bitbucket",
  "bitbucket-data-center": "Bitbucket",
  pagure: "Pagure",
  gitness: "Gitness",
};

/** What a person does after a rotation, in the order in which no push is refused. */
export function rotationLines({
  envFile,
  secretPath,
  host,
  secret,
  isGiven,
}: RotatedSecret): readonly string[] {
  const title = (host && titles[host]) ?? "the git host";
  const form = [
    `Then, at ${title}, in the form of the webhook, set the field Secret to:`,
    secret === null ? `  what is in ${secretPath} now (with --show it is printed here)` : `  ${secret}`,
  ];
  return [
    `The new secret is in ${secretPath}. The old one is still accepted,`,
    "as the previous one, so that no push is refused meanwhile.",
    "",
    "First restart the service, so that it reads both:",
    "  systemctl restart hotpush        or, in a container:",
    "  docker compose up -d hotpush     or, in a Swarm:",
    "  hotpush deploy",
    ...(isGiven ? [] : form),
    "When hotpush status says that the previous one is safe to drop:",
    `  hotpush secret drop-previous${envFile === undefined ? "" : ` --env-file ${envFile}`}`,
  ];
}
