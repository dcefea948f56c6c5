import assert from "node:assert/strict";
import { test } from "node:test";
import { composeFile } from "../../src/setup/compose-file.ts";
import type { Front } from "../../src/setup/front.ts";

const front: Front = { kind: "traefik", service: "edge", services: [], networks: [] };

test("behind Traefik, the deliveries go to Hotpush before the app gets them, by TLS where they come by it", () => {
  const text = write("https://shop.example.org/webhook");
  assert.match(text, /routers\.hotpush\.rule: Host\(`shop\.example\.org`\) && Path\(`\/webhook`\)$/m);
  assert.match(text, /routers\.hotpush\.priority: "1000"$/m);
  assert.match(text, /routers\.hotpush-tls\.tls: "true"$/m);
  assert.doesNotMatch(text, /routers\.hotpush\.tls/, "where TLS ends before Traefik, they come without");
});

test("without a public name every host's /webhook is Hotpush's", () => {
  const text = write("http://127.0.0.1:80/webhook");
  assert.match(text, /routers\.hotpush\.rule: Path\(`\/webhook`\)$/m);
  assert.doesNotMatch(text, /tls/);
});

function write(payloadUrl: string): string {
  return composeFile({
    front,
    payloadUrl: new URL(payloadUrl),
    image: "hotpush",
    hasCertificate: false,
    isSsh: false,
    home: "/root",
    localRemote: null,
    proxyName: "caddy",
  });
}
