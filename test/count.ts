import { globSync, readFileSync } from "node:fs";

/** Prints how many code lines and files each folder has. Blank lines, comments and other languages do not count. */
for (const root of ["src", "test"]) {
  const folders = new Map<string, { lines: number; files: number }>();
  for (const path of globSync(`${root}/**/*.{ts,js,css}`)) {
    const [, folder, ...rest] = path.split("/");
    const name = rest.length === 0 ? "" : `/${folder}`;
    const counted = folders.get(name) ?? { lines: 0, files: 0 };
    counted.lines += countLines(readFileSync(path, "utf8"));
    counted.files += 1;
    folders.set(name, counted);
  }
  for (const [name, counted] of [...folders].sort()) print(`${root}${name}`, counted);
  const all = [...folders.values()];
  print(`all of ${root}`, {
    lines: all.reduce((sum, { lines }) => sum + lines, 0),
    files: all.reduce((sum, { files }) => sum + files, 0),
  });
}

function countLines(text: string): number {
  let isInComment = false;
  let count = 0;
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (line === "" || (!isInComment && line.startsWith("//"))) continue;
    const startsComment = !isInComment && line.startsWith("/*");
    if (!isInComment && !startsComment) count += 1;
    if (isInComment || startsComment) isInComment = !line.includes("*/");
  }
  return count;
}

function print(name: string, { lines, files }: { readonly lines: number; readonly files: number }): void {
  process.stdout.write(
    `${name.padEnd(24)}${String(lines).padStart(7)} lines${String(files).padStart(5)} files\n`,
  );
}
