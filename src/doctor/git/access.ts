import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { credentialsPath } from "../../config/state-path.ts";
import { type Cure, type Fault, problem } from "../check.ts";
import { isInContainer } from "../in-container.ts";
import { quote } from "../quote.ts";
import type { Scene } from "../scene.ts";
import type { RemoteAnswer } from "./ask-remote.ts";
import { readSshSettings } from "./ssh-settings.ts";

type Failed = Extract<RemoteAnswer, { kind: "failed" }>;

/** What keeps this user from reading a remote that was reached; null where it is none of these. */
export async function faultOfAccess(answer: Failed, scene: Scene): Promise<Fault | null> {
  const { address, cause, lines } = answer;
  switch (cause) {
    case "key-open": {
      const key = /Permissions \d+ for '([^']+)'/.exec(lines)?.[1] ?? "~/.ssh/id_ed25519";
      const text = `Other users can read the private key ${key}, so ssh does not use it.`;
      return problem(text, { command: `chmod 600 ${quote(key)}` });
    }
    case "denied":
      return address.scheme === "ssh" ? await keyRefused(answer, scene) : passwordRefused(answer, scene);
    case "asks":
      return passwordAsked(answer, scene);
    case "not-found": {
      const text = `${address.text} is not there, or it is private and this user's key or token may not read it (git hosts do not say which). Is it spelt right?`;
      const change = `git -C ${quote(scene.repoPath)} remote set-url origin <the right address>`;
      return problem(text, { change });
    }
    default:
      return null;
  }
}

/** The remote must get the public half of a key, by a form of the git host. */
async function keyRefused({ address }: Failed, { scriptEnv }: Scene): Promise<Fault> {
  const { host } = address;
  const { keys } = await readSshSettings(address, scriptEnv);
  const text = `${host} refuses the keys of this user (permission denied). Print the public key and add it in the repository's settings there, as a deploy key that may read:`;
  return problem(text, publicKey(keys));
}

function publicKey(keys: readonly string[]): Cure {
  const present = keys.find((key) => existsSync(key));
  if (present !== undefined) return { command: `ssh-keygen -y -f ${quote(present)}` };
  const fresh = keys.find((key) => key.endsWith("ed25519")) ?? keys[0] ?? "~/.ssh/id_ed25519";
  const make = `mkdir -p -m 700 ${quote(dirname(fresh))} && ssh-keygen -q -t ed25519 -N '' -f ${quote(fresh)}`;
  return { command: `${make} && cat ${quote(`${fresh}.pub`)}` };
}

function passwordAsked({ address }: Failed, scene: Scene): Fault {
  const text = `${address.text} asks for a name and a password, and nobody is there to type them. Make a token that may read the repository at the git host; this asks for it once, and keeps it:`;
  return problem(text, { command: storeCommand(scene) });
}

function passwordRefused({ address }: Failed, scene: Scene): Fault {
  const text = `${address.text} refuses the name or the token that this user has: it may have expired. Make a new one that may read the repository; this asks for it, and keeps it:`;
  return problem(text, { command: storeCommand(scene) });
}

/**
 * `store` writes what was typed to ~/.git-credentials, readable by this user alone, when the host has accepted it. In a
 * container that is read-only, or gone with the next one: there it is kept with the state.
 */
function storeCommand({ repoPath, statePath }: Scene): string {
  const git = `git -C ${quote(repoPath)}`;
  const helper = isInContainer() ? `store --file=${quote(credentialsPath(statePath))}` : "store";
  return `${git} config credential.helper ${quote(helper)} && ${git} ls-remote origin HEAD`;
}
