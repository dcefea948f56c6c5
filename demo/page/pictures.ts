/**
 * `npm run page:pictures`: draws each screen of the page with canned data to docs/pictures, light, dark and as on a phone, with
 * the Chromium of this machine (CHROMIUM, else `chromium`).
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { servePage } from "./serve.ts";

const run = promisify(execFile);
const directory = join(import.meta.dirname, "../../docs/pictures");

const screens = {
  projects: "/",
  project: "/projects/shop",
  deployment: "/deployments/213",
  failure: "/deployments/212",
};
const looks = {
  light: { scheme: 1, size: "1280,860", scale: "1" },
  dark: { scheme: 0, size: "1280,860", scale: "1" },
  phone: { scheme: 1, size: "390,844", scale: "1.5" },
} as const;
/** For the first events of a log. */
const settledWithinMs = 2_500;

mkdirSync(directory, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), "hotpush-pictures-"));
const server = servePage(0);
await once(server, "listening");
const { port } = server.address() as AddressInfo;
for (const [name, path] of Object.entries(screens))
  for (const [look, options] of Object.entries(looks)) await draw(`page-${name}-${look}.png`, path, options);
server.close();
server.closeAllConnections();
rmSync(profile, { recursive: true, force: true });

async function draw(file: string, path: string, { scheme, size, scale }: (typeof looks)[keyof typeof looks]) {
  const options = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    `--user-data-dir=${profile}`,
    `--window-size=${size}`,
    `--force-device-scale-factor=${scale}`,
    `--blink-settings=preferredColorScheme=${scheme}`,
    `--timeout=${settledWithinMs}`,
    `--screenshot=${join(directory, file)}`,
    `http://localhost:${port}${path}`,
  ];
  await run(process.env.CHROMIUM ?? "chromium", options);
}
