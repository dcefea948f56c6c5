import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { formatDuration } from "../../config/duration.ts";
import { machineServices } from "../../config/machine-part.ts";
import type { MachinePart } from "../../machine-part/find.ts";
import { readCertificate } from "../../platform/tls-certificate.ts";
import { type CheckFinding, type Fault, okUnless, problem, quote, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { askCaddy, caddyAddress } from "./probe-machine-part.ts";

/** `run` loads a changed Caddyfile or site into Caddy within seconds. If Caddy rejects it, the earlier one stays. */
export async function checkCaddy({ machinePart }: Pick<DoctorContext, "machinePart">): Promise<CheckFinding> {
  if (machinePart === null) return skip("there is no machine part");
  const [loaded, wanted] = await Promise.all([
    askCaddy(machinePart, "/config/"),
    askCaddy(machinePart, "/adapt", readFileSync(machinePart.files.caddyfile, "utf8")),
  ]);
  if (loaded.kind === "none" || wanted.kind === "none")
    return noAnswer(loaded.kind === "none" ? loaded.code : "");
  if (wanted.status !== 200) return rejected(wanted.body, machinePart);
  const { result } = JSON.parse(wanted.body) as { readonly result: unknown };
  if (isDeepStrictEqual(JSON.parse(loaded.body), result))
    return okUnless([], "it has the configuration of the files");
  const text = `Caddy has not loaded the present ${machinePart.files.caddyfile} and its sites. \`hotpush run\` does so within seconds; its log says why it cannot:`;
  return warning(text, `docker logs --tail 50 hotpush-${machineServices.run}-1`);
}

function noAnswer(code: string): CheckFinding {
  if (code === "EACCES") return skip("this user may not use Caddy's socket; root may");
  return problem(
    `Caddy does not answer on its admin socket (${code}).`,
    `docker logs --tail 50 hotpush-${machineServices.caddy}-1`,
  );
}

function rejected(body: string, { files }: MachinePart): CheckFinding {
  const reason = /"error"\s*:\s*"((?:\\.|[^"\\])*)"/.exec(body)?.[1] ?? body.slice(0, 200);
  const text = `Caddy cannot read ${files.caddyfile} and its sites, so it keeps the earlier ones and would not start again: ${JSON.parse(`"${reason}"`)}`;
  return problem(text, { change: `${files.sitesPath}/ or ${files.caddyfile}` });
}

/** Git hosts and browsers refuse an invalid certificate. Caddy gets and renews them by itself. */
export async function checkCertificates({
  machinePart,
}: Pick<DoctorContext, "machinePart">): Promise<CheckFinding> {
  if (machinePart === null) return skip("there is no machine part");
  const config = await askCaddy(machinePart, "/config/");
  if (config.kind === "none") return skip("Caddy does not answer");
  const names = namesWithTls(JSON.parse(config.body));
  if (names.length === 0) return skip("no site has https");
  const faults = await Promise.all(names.map((name) => faultsOf(name, machinePart)));
  return okUnless(faults.flat(), `valid for ${names.join(", ")}`);
}

interface CaddyConfig {
  readonly apps?: {
    readonly http?: {
      readonly servers?: Readonly<
        Record<
          string,
          {
            readonly listen?: readonly string[];
            readonly routes?: readonly {
              readonly match?: readonly { readonly host?: readonly string[] }[];
            }[];
          }
        >
      >;
    };
  };
}

function namesWithTls(config: CaddyConfig | null): readonly string[] {
  const servers = Object.values(config?.apps?.http?.servers ?? {});
  const withTls = servers.filter(({ listen = [] }) => listen.some((address) => address.endsWith(":443")));
  const hosts = withTls.flatMap(({ routes = [] }) =>
    routes.flatMap(({ match = [] }) => match.flatMap(({ host = [] }) => host)),
  );
  return [...new Set(hosts)].filter((name) => !name.includes("*"));
}

const answerTimeoutMs = 10_000;
/** Caddy renews a certificate when a third of its time is left, 30 days of 90. */
const renewedShare = 1 / 4;

async function faultsOf(name: string, machinePart: MachinePart): Promise<readonly Fault[]> {
  try {
    const address = caddyAddress(machinePart, "https");
    const { refusal, validFromMs, expiresAtMs } = await readCertificate(
      { ...address, name },
      answerTimeoutMs,
    );
    const leftMs = expiresAtMs - Date.now();
    if (refusal !== null) return [invalid(name, refusal)];
    if (leftMs > (expiresAtMs - validFromMs) * renewedShare) return [];
    const text = `The certificate of ${name} expires in ${formatDuration(leftMs)}, and Caddy has not renewed it. Its log says why:`;
    return [warning(text, logOf(name))];
  } catch (error) {
    return [invalid(name, (error as NodeJS.ErrnoException).code ?? "no answer")];
  }
}

function invalid(name: string, reason: string): Fault {
  const text = `${name} has no valid certificate (${reason}). Caddy gets one when the DNS record of ${name} has the address of this machine and ports 80 and 443 are open. Its log says what is missing:`;
  return problem(text, logOf(name));
}

function logOf(name: string): string {
  return `docker logs hotpush-${machineServices.caddy}-1 2>&1 | grep ${quote(name)} | tail -5`;
}
