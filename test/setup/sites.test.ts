import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { planServed } from "../../src/setup/served.ts";
import { serverCaddyfile } from "../../src/setup/server-files.ts";
import {
  placesIn,
  planPage,
  projectSite,
  refuseOldCaddyfile,
  refuseTakenNames,
  siteText,
} from "../../src/setup/sites.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { noChoices } from "./public-projects.ts";

const tool = { ports: [{ target: 8080, published: "8080" }] };

test("a site has the deliveries at the project's name, and each service at its own", () => {
  const services = { app: { ports: [{ target: 4000, published: "4000" }] }, adminer: tool };
  const place = { service: "adminer", port: null, host: "adminer.org" };
  const text = siteText(
    planServed(services, { ...noChoices, places: [place] }),
    "shop",
    new URL(`https://${noChoices.name}/webhook`),
    true,
  );
  assert.equal(
    text.split("\n").slice(1).join("\n"),
    `
app.example.org {
	import deliveries shop
	import service shop app 4000
}

adminer.org {
	import service shop adminer 8080
}
`,
  );
});

test("without a page at the project's name, only its webhook is there", () => {
  const plan = planServed({ worker: { image: "worker" } }, noChoices);
  const text = siteText(plan, "shop", new URL(`http://${noChoices.name}/webhook`), false);
  assert.match(text, /^http:\/\/app\.example\.org \{\n\timport deliveries shop\n\thandle \{/m);
});

test("a payload URL with a path of its own leaves /webhook to the app", () => {
  const plan = planServed({ app: tool }, noChoices);
  const linesAt = (path: string) => siteText(plan, "shop", new URL(`https://${noChoices.name}${path}`), true);
  assert.match(linesAt("/hooks/hotpush"), /^\timport deliveries_at shop \/hooks\/hotpush$/m);
  for (const path of ["/webhook", "/webhook/shop"])
    assert.match(linesAt(path), /^\timport deliveries shop$/m);
});

test("a site keeps a person's lines, but not two addresses that have changed places", () => {
  const siteWith = (host: string) =>
    projectSite(
      planServed(
        { app: tool, adminer: { ports: [{ target: 81, published: "81" }] } },
        {
          ...noChoices,
          places: [
            { service: "app", port: null, host },
            { service: "adminer", port: null, host: host === "a.org" ? "b.org" : "a.org" },
          ],
        },
      ),
      "shop",
      new URL("https://a.org/webhook"),
      place,
      false,
    );
  const text = siteWith("a.org").make(null);
  const changed = text.replace("a.org {", "a.org {\n\tencode zstd");
  assert.equal(siteWith("a.org").make(changed), changed);
  assert.notEqual(siteWith("b.org").make(text), text);
});

test("a path that was never given leaves /webhook to Hotpush too, and one that was given does not", () => {
  const url = new URL(`https://${noChoices.name}/hooks/x`);
  const plan = planServed({ app: tool }, noChoices);
  const next = (before: string | null, isPathGiven: boolean) =>
    projectSite(plan, "shop", url, place, isPathGiven).make(before);
  const lineOf = (text: string) => /import (deliveries.*)/.exec(text)?.[1];
  const before = siteText(plan, "shop", new URL(`https://${noChoices.name}/webhook`), true);
  const both = next(before, false);
  assert.equal(lineOf(both), "deliveries_at shop /hooks/x /webhook /webhook/shop");
  assert.equal(next(both, false), both);
  const alone = next(both, true);
  assert.equal(lineOf(alone), "deliveries_at shop /hooks/x");
  assert.equal(next(alone, false), alone);
});

test("a site that a server's older Caddyfile cannot import is refused, unless it is there already", () => {
  const caddyfile = { name: "Caddyfile", text: serverCaddyfile(), before: "" };
  const old = { ...caddyfile, text: caddyfile.text.replace("(deliveries_at)", "(other)") };
  const text = siteText(planServed({ app: tool }, noChoices), "shop", new URL("https://a.org/x"), true);
  const site = { name: "sites/shop.caddy", text, before: null };
  assert.throws(() => refuseOldCaddyfile([old, site]), /hotpush upgrade$/);
  assert.doesNotThrow(() => refuseOldCaddyfile([old, { ...site, before: text }]));
  assert.doesNotThrow(() => refuseOldCaddyfile([caddyfile, site]));
});

test("the places of another run drop names below the former host name", () => {
  const text =
    "a.org {\n\timport service p web 80\n}\nx.a.org {\n\timport service p x 81\n}\nb.org, c.org {\n\timport service p y 82\n}\n";
  const at = (now: string) => placesIn(text, "a.org", now).map(({ host }) => host);
  assert.deepEqual(at("a.org"), ["a.org", "x.a.org", "b.org"]);
  assert.deepEqual(at("new.org"), ["b.org"]);
});

const pageUrl = new URL("https://hotpush.example.org");
const place = { ports: { http: 80, https: 443 } };
const behind = { ports: { http: 8080, https: 8443 } };

test("the page gets a site of its own, with a certificate if Caddy can have one", () => {
  for (const [url, at, first] of [
    [pageUrl, place, "hotpush.example.org {"],
    [pageUrl, behind, "http://hotpush.example.org {"],
    [new URL("http://localhost"), place, "http://localhost {"],
  ] as const)
    assert.ok(planPage(url, at).site.make(null).includes(`\n${first}\n\timport page\n}\n`), first);
});

test("an address at a port that Caddy does not have is refused, with the right one", () => {
  const refused = [
    ["http://localhost:8091", place, /Run: hotpush init --page http:\/\/localhost$/],
    ["https://hotpush.example.org:8443", place, /Run: hotpush init --page https:\/\/hotpush\.example\.org$/],
    ["http://localhost", behind, /Run: hotpush init --page http:\/\/localhost:8080$/],
  ] as const;
  for (const [address, at, says] of refused)
    assert.throws(() => planPage(new URL(address), at), says, address);
  for (const address of ["http://localhost:8080", "https://hotpush.example.org:9443"])
    assert.doesNotThrow(() => planPage(new URL(address), behind), address);
});

test("lines that a person added to its site stay, until it gets another address", () => {
  const page = planPage(pageUrl, place).site;
  const edited = page.make(null).replace("import", "log\n\timport");
  assert.equal(page.make(edited), edited);
  const moved = planPage(new URL("https://other.example.org"), place).site.make(edited);
  assert.match(moved, /^other\.example\.org \{$/m);
});

test("a project and the page have host names of their own", (t) => {
  const sites = temporaryDirectory(t);
  writeFileSync(join(sites, "shop.caddy"), "shop.example.org {\n}\n\nhttp://admin.example.org:81 {\n}\n");
  writeFileSync(join(sites, "page.caddy"), "hotpush.example.org {\n}\n");
  const refuse = (name: string, host: string | null) => () => {
    const page = host === null ? null : new URL(`https://${host}`);
    refuseTakenNames(sites, "blog", { upstreams: [] }, { name, page });
  };
  for (const host of ["shop.example.org", "admin.example.org", "blog.example.org"])
    assert.throws(refuse("blog.example.org", host), /a host name of its own/, host);
  for (const host of ["hotpush.example.org", null]) assert.doesNotThrow(refuse("blog.example.org", host));
  for (const name of ["admin.example.org", "hotpush.example.org"])
    assert.throws(refuse(name, null), /is an address of the project/, name);
});
