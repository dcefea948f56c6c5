import { type Cure, type Fault, problem } from "../check.ts";
import { quote } from "../quote.ts";
import type { RemoteAnswer } from "./ask-remote.ts";
import type { RemoteAddress } from "./remote-address.ts";

type Failed = Extract<RemoteAnswer, { kind: "failed" }>;

/** ssh on the port of https, for networks that let nothing else out; documented by each of these hosts. */
const sshOverHttps: ReadonlyMap<string, string> = new Map([
  ["github.com", "ssh.github.com"],
  ["gitlab.com", "altssh.gitlab.com"],
  ["bitbucket.org", "altssh.bitbucket.org"],
]);

/** What keeps the remote from being reached at all; null where it was reached. */
export function faultOfNetwork({ cause, address }: Failed, repoPath: string): Fault | null {
  const { host, text } = address;
  const where = `${host}${address.port === null ? "" : ` port ${address.port}`}`;
  switch (cause) {
    case "name":
      return problem(
        `The name ${host} cannot be found (${text}). Is it spelt right, and does DNS work here?`,
        {
          command: `getent hosts ${quote(host ?? "")} || cat /etc/resolv.conf`,
          change: `git -C ${quote(repoPath)} remote set-url origin <the right address>`,
        },
      );
    case "refused":
      return problem(`${where} refuses the connection: nothing listens there, or a firewall is between.`, {
        ...otherWay(address, repoPath),
      });
    case "timeout":
      return problem(`${where} does not answer within 5 s: it is down, or a firewall is between.`, {
        ...otherWay(address, repoPath),
      });
    case "clock":
      return problem(
        `The certificate of ${host} is not valid at the time that the clock here shows. See clock.`,
        {
          command: "date",
        },
      );
    case "certificate":
      return problem(`The certificate of ${host} cannot be verified.`, {
        command: "apt-get install --reinstall -y ca-certificates && update-ca-certificates",
      });
    case "no-ssh":
      return problem("The remote is reached by ssh, which is not installed.", {
        command: "apt-get install -y openssh-client",
      });
    default:
      return null;
  }
}

function otherWay({ scheme, host, path }: RemoteAddress, repoPath: string): Cure {
  const other = scheme === "ssh" ? sshOverHttps.get(host ?? "") : undefined;
  const setUrl = `git -C ${quote(repoPath)} remote set-url origin`;
  if (other === undefined) return { change: `${setUrl} <an address that can be reached from here>` };
  return { command: `${setUrl} ${quote(`ssh://git@${other}:443/${path}`)}` };
}
