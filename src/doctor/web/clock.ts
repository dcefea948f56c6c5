import { existsSync } from "node:fs";
import { formatDuration } from "../../config/duration.ts";
import { type Check, type Cure, type Fault, judge, ok, problem, warning } from "../check.ts";
import { quote } from "../quote.ts";
import { outputOf } from "../run-program.ts";
import type { Scene } from "../scene.ts";
import { ask } from "../service/ask-hotpush.ts";

/** Signed timestamps (GitLab, Standard Webhooks) are good for five minutes; certificates for days. */
const allowedMs = 5 * 60_000;

/** A clock that is wrong makes certificates invalid and signed deliveries look replayed. */
export const clockCheck: Check = {
  id: "clock",
  group: "Service",
  subject: "the clock is right",
  async look(scene) {
    const host = await hostToAsk(scene);
    const reply = host === null ? null : await ask(host, "HEAD", "", {}, true);
    const date = reply?.kind === "answer" ? Date.parse(reply.date ?? "") : Number.NaN;
    if (host !== null && !Number.isNaN(date)) {
      const offMs = Math.abs(Date.now() - date);
      if (offMs <= allowedMs) return ok(`as that of ${new URL(host).hostname}`);
      const direction = Date.now() < date ? "behind" : "ahead of";
      const text = `The clock is ${formatDuration(offMs)} ${direction} that of ${new URL(host).hostname}.`;
      return judge([problem(text, clockCommand(host))], "");
    }
    const faults = [...(await beforeLastCommit(scene)), ...(await unsynchronised(scene))];
    return judge(faults, "later than the last commit; no host could be asked");
  },
};

async function hostToAsk({ remote }: Scene): Promise<string | null> {
  const answer = await remote();
  if (!("address" in answer) || answer.address.host === null) return null;
  const { scheme, host, port } = answer.address;
  if (scheme === "http") return `http://${host}:${port ?? 80}/`;
  return `https://${host}${scheme === "https" && port !== null ? `:${port}` : ""}/`;
}

async function beforeLastCommit({ repoPath, scriptEnv }: Scene): Promise<readonly Fault[]> {
  const seconds = await outputOf(["git", "-C", repoPath, "log", "-1", "--format=%ct"], { env: scriptEnv });
  const committedAtMs = Number(seconds) * 1_000;
  if (seconds === null || Date.now() > committedAtMs - allowedMs) return [];
  const [now, then] = [new Date(), new Date(committedAtMs)].map((date) => date.toISOString().slice(0, 16));
  return [problem(`The clock shows ${now}, which is before the last commit (${then}).`, clockCommand(null))];
}

async function unsynchronised({ scriptEnv }: Scene): Promise<readonly Fault[]> {
  if (!existsSync("/run/systemd/system")) return [];
  const argv = ["timedatectl", "show", "--property=NTPSynchronized", "--value"] as const;
  if ((await outputOf(argv, { env: scriptEnv })) !== "no") return [];
  return [warning("The clock is not kept right by a time server.", { command: "timedatectl set-ntp true" })];
}

function clockCommand(host: string | null): Cure {
  if (existsSync("/run/systemd/system")) return { command: "timedatectl set-ntp true" };
  const from = quote(host ?? "https://github.com/");
  return { command: `date --set "$(curl -skI ${from} | sed -n 's/^[Dd]ate: //p')"` };
}
