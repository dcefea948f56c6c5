// Loads all of Hotpush once, so that Node caches the compiled code. The first start is then as fast as any later one, for
// the same user and the same cache (NODE_COMPILE_CACHE, as in bin/hotpush and `npm start`). A failure only costs that
// speed, unless `--strict` is given. A Node that is too old for Hotpush does nothing.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const isStrict = process.argv.includes("--strict");
const [major] = process.versions.node.split(".");
if (Number(major) >= 24) {
  await compile(dirname(dirname(fileURLToPath(import.meta.url)))).catch((error) => {
    console.error(`Hotpush was not compiled ahead; its first start compiles it: ${error.message}`);
    process.exitCode = isStrict ? 1 : 0;
  });
}

async function compile(root) {
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
