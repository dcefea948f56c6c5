import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { servePage } from "../../../demo/page/serve.ts";
import { noChromium, startTab } from "../../harness/chromium.ts";

const paths =
  "/ /projects/shop /projects/shop?state=cancelled /deployments/213 /deployments/212 /account /nothing /sign-in?link=x";
const axe = () => readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

for (const width of [360, 1400])
  for (const scheme of ["light", "dark"])
    test(`axe finds nothing on any screen, which is ${width} px wide at most and ${scheme}`, {
      skip: noChromium,
    }, async (t) => {
      const server = servePage(0);
      await once(server, "listening");
      t.after(() => server.close().closeAllConnections());
      const { port } = server.address() as AddressInfo;
      const tab = await startTab(t, { width, height: 900 });
      const features = [{ name: "prefers-color-scheme", value: scheme }];
      await tab.call("Emulation.setEmulatedMedia", { features });
      for (const path of paths.split(" ")) {
        await tab.open(`http://localhost:${port}${path}`);
        await tab.until(
          `document.querySelector("#log")?.dataset.ready !== undefined || !document.querySelector("#log")`,
        );
        assert.ok(
          (await tab.read<number>("document.documentElement.scrollWidth")) <= width,
          `${path} is wider`,
        );
        await tab.read(`${axe()}; true`);
        const found = await tab.read(
          `axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes[0].html.slice(0, 200)))`,
        );
        assert.deepEqual(found, [], path);
      }
    });
