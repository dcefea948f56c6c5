import { createServer, type Server } from "node:http";
import { BlockList } from "node:net";
import { pino } from "pino";
import { createPage } from "../../src/front/page/page.ts";
import { cannedRun } from "./canned-run.ts";

/** Serves the page with canned data on `port` of localhost; 0 takes any free one. Everybody who comes is signed in. */
export function servePage(port: number): Server {
  const settings = {
    pageUrl: new URL("http://localhost"),
    trustedProxies: new BlockList(),
    isBadgePublic: false,
  };
  const run = cannedRun();
  const page = createPage(settings, run, pino({ level: "warn" }));
  const server = createServer((request, response) => {
    request.headers.host = settings.pageUrl.host;
    request.headers.cookie = "hotpush=hps_canned";
    page.emit("request", request, response);
  });
  return server.listen(port, "localhost");
}

/** `node demo/page/serve.ts`: to look at it while changing it. */
if (import.meta.main) servePage(9001);
