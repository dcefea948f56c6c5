import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { serverFilesAt, serverStateAt } from "../../src/config/server.ts";
import { serverCaddyfile } from "../../src/setup/server-files.ts";
import { planPage, refuseTakenNames } from "../../src/setup/sites.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const url = new URL("https://hotpush.example.org");
const place = {
  files: serverFilesAt("/etc/hotpush"),
  state: serverStateAt("/var/lib/hotpush"),
  env: {},
  isNew: false,
  ports: { http: 80, https: 443 },
};

test("the page gets a site of its own, with a certificate if Caddy can have one", () => {
  const text = planPage(url, place).site.make(null);
  assert.match(text, /^hotpush\.example\.org \{\n\timport page\n\}$/m);
  assert.match(
    serverCaddyfile(),
    /^\(page\) \{[^}]+reverse_proxy front\.hotpush\.containers\.internal:9001 /m,
  );
  const behind = planPage(url, { ...place, ports: { http: 8080, https: 8443 } }).site.make(null);
  assert.match(behind, /^http:\/\/hotpush\.example\.org \{$/m);
  const local = planPage(new URL("http://localhost"), place).site.make(null);
  assert.match(local, /^http:\/\/localhost \{$/m);
});

test("an address at a port that Caddy does not have is refused, with the right one", () => {
  const other = { ...place, ports: { http: 8080, https: 8443 } };
  const refused = [
    ["http://localhost:8091", place, /Run: hotpush init --page http:\/\/localhost$/],
    ["https://hotpush.example.org:8443", place, /Run: hotpush init --page https:\/\/hotpush\.example\.org$/],
    ["http://localhost", other, /Run: hotpush init --page http:\/\/localhost:8080$/],
  ] as const;
  for (const [address, at, says] of refused)
    assert.throws(() => planPage(new URL(address), at), says, address);
  for (const address of ["http://localhost:8080", "https://hotpush.example.org:9443"])
    assert.doesNotThrow(() => planPage(new URL(address), other), address);
});

test("lines that a person added to its site stay, until it gets another address", () => {
  const { site } = planPage(url, place);
  const edited = site.make(null).replace("import", "log\n\timport");
  assert.equal(site.make(edited), edited);
  const moved = planPage(new URL("https://other.example.org"), place).site.make(edited);
  assert.match(moved, /^other\.example\.org \{$/m);
});

test("a project and the page have host names of their own", (t) => {
  const sites = temporaryDirectory(t);
  writeFileSync(
    join(sites, "shop.caddy"),
    "shop.example.org {\n}\n\nhttp://admin.example.org {\n}\n\nhttp://:81 {\n}\n",
  );
  writeFileSync(join(sites, "page.caddy"), "hotpush.example.org {\n}\n");
  const refuse = (name: string, host: string | null) => () =>
    refuseTakenNames(
      sites,
      "blog",
      { upstreams: [] },
      { name, page: host === null ? null : new URL(`https://${host}`) },
    );
  for (const host of ["shop.example.org", "admin.example.org", "blog.example.org"])
    assert.throws(refuse("blog.example.org", host), /a host name of its own/, host);
  for (const host of ["hotpush.example.org", null]) assert.doesNotThrow(refuse("blog.example.org", host));
  for (const name of ["admin.example.org", "hotpush.example.org"])
    assert.throws(refuse(name, null), /is an address of the project/, name);
});
