const contextLines = 3;

interface Edit {
  readonly sign: " " | "-" | "+";
  readonly line: string;
}

/**
 * The difference between two texts as `diff -u` shows it; "" where there is none. Made for files of some hundred lines:
 * it takes time and memory by the product of their lengths.
 */
export function unifiedDiff(name: string, before: string, after: string): string {
  if (before === after) return "";
  const edits = editsOf(linesOf(before), linesOf(after));
  const hunks = hunksOf(edits).map((hunk) => hunkText(edits, hunk));
  return [`--- ${name}`, `+++ ${name}`, ...hunks].join("\n");
}

/** By the longest common subsequence of lines. */
function editsOf(before: readonly string[], after: readonly string[]): readonly Edit[] {
  const lengths = commonLengths(before, after);
  const edits: Edit[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const [old, fresh] = [before[i], after[j]];
    if (old !== undefined && old === fresh) {
      edits.push({ sign: " ", line: old });
      i += 1;
      j += 1;
    } else if (fresh === undefined || (old !== undefined && at(lengths, i + 1, j) >= at(lengths, i, j + 1))) {
      edits.push({ sign: "-", line: old ?? "" });
      i += 1;
    } else {
      edits.push({ sign: "+", line: fresh });
      j += 1;
    }
  }
  return edits;
}

/** `[i][j]`: how many lines what follows `i` and what follows `j` have in common. */
function commonLengths(before: readonly string[], after: readonly string[]): readonly Uint32Array[] {
  const lengths = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    const row = lengths[i] ?? new Uint32Array();
    for (let j = after.length - 1; j >= 0; j -= 1) {
      const isSame = before[i] === after[j];
      row[j] = isSame
        ? at(lengths, i + 1, j + 1) + 1
        : Math.max(at(lengths, i + 1, j), at(lengths, i, j + 1));
    }
  }
  return lengths;
}

function at(lengths: readonly Uint32Array[], i: number, j: number): number {
  return lengths[i]?.[j] ?? 0;
}

/** Ranges of edits, [from, to), each change with the lines around it; those that touch are one. */
function hunksOf(edits: readonly Edit[]): readonly (readonly [number, number])[] {
  const hunks: [number, number][] = [];
  for (const [index, { sign }] of edits.entries()) {
    if (sign === " ") continue;
    const from = Math.max(0, index - contextLines);
    const to = Math.min(edits.length, index + contextLines + 1);
    const last = hunks.at(-1);
    if (last && from <= last[1]) last[1] = to;
    else hunks.push([from, to]);
  }
  return hunks;
}

function hunkText(edits: readonly Edit[], [from, to]: readonly [number, number]): string {
  const earlier = edits.slice(0, from);
  const shown = edits.slice(from, to);
  const range = (side: "-" | "+") => {
    const start = earlier.filter(({ sign }) => sign === " " || sign === side).length;
    const count = shown.filter(({ sign }) => sign === " " || sign === side).length;
    return `${side}${count === 0 ? start : start + 1},${count}`;
  };
  return [`@@ ${range("-")} ${range("+")} @@`, ...shown.map(({ sign, line }) => `${sign}${line}`)].join("\n");
}

function linesOf(text: string): readonly string[] {
  const lines = text.split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
