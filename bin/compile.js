// Loads all of Hotpush once, so that Node caches the compiled code. The first start is then as fast as any later one, for
// the same user and the same cache (NODE_COMPILE_CACHE, as in bin/hotpush and `npm start`). A failure only costs that
// speed, unless `--strict` is given. A Node that is too old for Hotpush has the one of the optional package do it.
import { spawnSync } from "node:child_process";
import { existsSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const isStrict = process.argv.includes("--strict");
const file = fileURLToPath(import.meta.url);
const root = dirname(dirname(file));
const ownNode = `node-linux-${process.arch}/bin/node`;
const hasOwnNode = existsSync(join(root, "node_modules", ownNode));
const link = join(root, "node_modules/.bin/node");
if (hasOwnNode && !existsSync(link)) {
  // npm before 11.6 leaves it out, because two packages have a program of that name.
  rmSync(link, { force: true });
  symlinkSync(join("..", ownNode), link);
}
const [major] = process.versions.node.split(".");
if (Number(major) >= 24) {
  await compile().catch((error) => {
    console.error(`Hotpush was not compiled ahead; its first start compiles it: ${error.message}`);
    process.exitCode = isStrict ? 1 : 0;
  });
} else if (hasOwnNode) {
  const { status } = spawnSync(link, [file, ...process.argv.slice(2)], { stdio: "inherit" });
  process.exitCode = status ?? 1;
}

async function compile() {
  // Not imported above, because older versions do not have them.
  const [{ globSync }, { enableCompileCache }] = await Promise.all([
    import("node:fs"),
    import("node:module"),
  ]);
  enableCompileCache(process.env.NODE_COMPILE_CACHE || join(root, "node_modules/.cache/compiled"));
  // Loading main runs the command line, so it gets --version instead of starting the service. Its output is dropped,
  // because a program may read npm's output.
  process.argv.splice(2, Number.POSITIVE_INFINITY, "--version");
  process.stdout.write = () => true;
  const pattern = existsSync(join(root, "src")) ? "src/**/*.ts" : "dist/**/*.js";
  // Those run in browsers.
  const files = globSync(pattern, { cwd: root, exclude: ["**/page/assets/**"] });
  for (const file of files) await import(pathToFileURL(join(root, file)).href);
}
