import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Stored {
  readonly type: string;
  readonly bytes: Buffer;
}

/** How it answers about a tag: as it is, with a failure, or with the digest of something else. */
type Manner = "well" | "fails" | "lies";

/** An image registry in memory, on an address that engines trust without TLS, such as a loopback address. */
export type Registry = Awaited<ReturnType<typeof startRegistry>>;

/** Serves the part of https://github.com/opencontainers/distribution-spec that an engine needs to push and pull. */
export async function startRegistry(address: string = "127.0.0.1", login: string | null = null) {
  const stored = new Map<string, Stored>();
  const uploads = new Map<string, Buffer>();
  let manner: Manner = "well";
  let asked = 0;
  let onRead = () => {};
  const isKnown = ({ headers }: IncomingMessage) =>
    login === null || headers.authorization === `Basic ${Buffer.from(login).toString("base64")}`;
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    const url = new URL(request.url ?? "", "http://registry");
    const [, name = "", kind = "", reference = ""] =
      /^\/v2\/(.+)\/(blobs\/uploads|blobs|manifests)\/([^/]*)$/.exec(url.pathname) ?? [];
    if (!isKnown(request)) return answer(response, 401, { "www-authenticate": 'Basic realm="lab"' });
    if (kind === "") return answer(response, 200);
    const isTag = kind === "manifests" && request.method !== "PUT" && !reference.startsWith("sha256:");
    if (isTag) asked += 1;
    if (isTag && manner === "fails") return answer(response, 500);
    if (kind === "blobs/uploads") return upload(request, response, { name, reference, body, url });
    if (request.method === "PUT") {
      const digest = store(body, request.headers["content-type"] ?? "");
      stored.set(`${name}:${reference}`, stored.get(digest) ?? { type: "", bytes: body });
      return answer(response, 201, { "docker-content-digest": digest });
    }
    const lie = kind === "manifests" && manner === "lies" ? stored.get(`${name}:main`) : undefined;
    const found = lie ?? stored.get(reference) ?? stored.get(`${name}:${reference}`);
    if (kind === "blobs" && request.method === "GET") onRead();
    if (!found) return answer(response, 404);
    const headers = {
      "content-type": found.type,
      "docker-content-digest": digestOf(lie ? Buffer.from("") : found.bytes),
    };
    answer(response, 200, { ...headers, "content-length": found.bytes.length }, found.bytes);
  });

  function upload(
    request: IncomingMessage,
    response: ServerResponse,
    { name, reference, body, url }: { name: string; reference: string; body: Buffer; url: URL },
  ): void {
    const id = request.method === "POST" ? randomUUID() : reference;
    const bytes = Buffer.concat([uploads.get(id) ?? Buffer.alloc(0), body]);
    const location = `/v2/${name}/blobs/uploads/${id}`;
    const isWhole = url.searchParams.has("digest");
    uploads.set(id, bytes);
    const range = `0-${Math.max(0, bytes.length - 1)}`;
    if (isWhole) uploads.delete(id);
    const digest = isWhole
      ? { "docker-content-digest": store(bytes, "application/octet-stream") }
      : { range };
    answer(response, isWhole ? 201 : 202, { location, ...digest });
  }

  function store(bytes: Buffer, type: string): string {
    stored.set(digestOf(bytes), { type, bytes });
    return digestOf(bytes);
  }

  server.listen(0, address);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    /** `<address>:<port>`, the first part of the names of its images. */
    host: `${address}:${port}`,
    /** How often somebody has asked for a tag. */
    asked: () => asked,
    /** From now on, and until the next call. */
    behave(next: Manner) {
      manner = next;
    },
    /** Called when a part of an image is read. */
    onRead(work: () => void) {
      onRead = work;
    },
    /** Gives the image of a tag another one too: `name:tag`. */
    tag(from: string, to: string) {
      stored.set(to, stored.get(from) ?? { type: "", bytes: Buffer.alloc(0) });
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

function answer(response: ServerResponse, status: number, headers = {}, body?: Buffer): void {
  response.writeHead(status, { "docker-distribution-api-version": "registry/2.0", ...headers });
  response.end(response.req.method === "HEAD" ? undefined : body);
}
