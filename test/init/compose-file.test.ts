import assert from "node:assert/strict";
import { test } from "node:test";
import { composeFile } from "../../src/init/compose-file.ts";
import type { ReverseProxy } from "../../src/init/reverse-proxy.ts";

const traefik: ReverseProxy = { kind: "traefik", service: "edge", services: [], networks: [] };

test("behind Traefik, Hotpush gets the deliveries instead of the app, also by TLS", () => {
  const text = write("https://shop.example.org/webhook");
  assert.match(text, /routers\.hotpush\.rule: Host\(`shop\.example\.org`\) && Path\(`\/webhook`\)$/m);
  assert.match(text, /routers\.hotpush\.priority: "1000"$/m);
  assert.match(text, /routers\.hotpush-tls\.tls: "true"$/m);
  assert.doesNotMatch(text, /routers\.hotpush\.tls/, "if TLS ends before Traefik, they arrive without it");
});

test("without a public name, Hotpush gets /webhook of every host", () => {
  const text = write("http://127.0.0.1:80/webhook");
  assert.match(text, /routers\.hotpush\.rule: Path\(`\/webhook`\)$/m);
  assert.doesNotMatch(text, /tls/);
});

test("a proxy is trusted about addresses, but not if Hotpush publishes a port", () => {
  const setting = /^ {6}TRUSTED_PROXIES: \$\{TRUSTED_PROXIES:-(.*)\}$/m;
  assert.equal(setting.exec(write("http://127.0.0.1/webhook"))?.[1], "private_ranges");
  const published = write("http://127.0.0.1:9000/webhook", { kind: "none" });
  assert.match(published, /ports: /);
  assert.equal(setting.exec(published)?.[1], "");
});

test("the file in ALLOWED_SIGNERS is mounted at its path, read-only", () => {
  const source = `source: \${ALLOWED_SIGNERS:?run hotpush init}`;
  const mounted = write("http://127.0.0.1/webhook", traefik, true);
  assert.ok(
    mounted.includes(`${source}\n        target: ${source.slice(8)}\n        read_only: true\n`),
    mounted,
  );
  assert.ok(!write("http://127.0.0.1/webhook").includes(source));
});

function write(payloadUrl: string, proxy: ReverseProxy = traefik, hasSigners = false): string {
  return composeFile({
    hasSigners,
    proxy,
    payloadUrl: new URL(payloadUrl),
    image: "hotpush",
    hasCertificate: false,
    isSsh: false,
    home: "/root",
    localRemote: null,
    proxyName: "caddy",
  });
}
