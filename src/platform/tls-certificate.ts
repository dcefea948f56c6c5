import { once } from "node:events";

/** The certificate that a server shows for a name. */
export interface ShownCertificate {
  /** Why a client would refuse it, such as `CERT_HAS_EXPIRED`; null if it would not. */
  readonly refusal: string | null;
  readonly validFromMs: number;
  readonly expiresAtMs: number;
}

/** Loaded when it is needed: few commands are. */
const loadTls = () => import("node:tls");

/**
 * Connects to `host`:`port` and reads the certificate that is shown for `name`.
 *
 * @throws the system's error, with its `code`; `ABORT_ERR` after `timeoutMs`
 */
export async function readCertificate(
  { host, port, name }: { readonly host: string; readonly port: number; readonly name: string },
  timeoutMs: number,
): Promise<ShownCertificate> {
  const { connect } = await loadTls();
  const socket = connect({ host, port, servername: name, rejectUnauthorized: false });
  try {
    await once(socket, "secureConnect", { signal: AbortSignal.timeout(timeoutMs) });
    const { authorizationError } = socket;
    const { valid_from, valid_to } = socket.getPeerCertificate();
    return {
      refusal: socket.authorized ? null : String(Object(authorizationError).code ?? authorizationError),
      validFromMs: Date.parse(valid_from),
      expiresAtMs: Date.parse(valid_to),
    };
  } finally {
    socket.destroy();
  }
}
