import assert from "node:assert/strict";
import { test } from "node:test";
import { proxyAdvice } from "../../src/init/proxy-config.ts";

test("the lines for nginx make it resolve Hotpush's name again for new containers", () => {
  const lines = proxyAdvice({ kind: "other-proxy", service: "edge", services: ["web"], networks: [] });
  const block = /location = \/webhook \{\n([^}]+)\}/.exec(lines.join("\n"))?.[1] ?? "";
  const directives = block.split("\n").map((line) => line.trim());
  assert.deepEqual(directives, [
    "resolver 127.0.0.11 valid=1s;",
    "set $hotpush http://hotpush:9000;",
    "proxy_pass $hotpush;",
    "proxy_next_upstream error timeout non_idempotent;",
    "client_max_body_size 25m;",
    "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
    "",
  ]);
  assert.match(lines.join("\n"), /the same for the app/);
  for (const line of lines) assert.ok(line.length <= 78, line);
});
