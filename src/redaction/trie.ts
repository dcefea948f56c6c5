/** Texts by their common beginnings. Nodes are numbers, 0 is the root; each array says one thing of each node. */
export interface Trie {
  /** A child, or 0; the others follow by `sibling`. */
  readonly first: Int32Array;
  readonly sibling: Int32Array;
  /** The byte that leads to it. */
  readonly label: Uint8Array;
  readonly depth: Int32Array;
  /** The node of the longest end of this one's text with which some pattern begins. */
  readonly fallback: Int32Array;
  /** The length of the longest pattern with which this node's text ends, or 0. */
  readonly longest: Int32Array;
}

/** Builds the trie of `patterns`, with the links along which a search goes on where a pattern goes no further. */
export function buildTrie(patterns: readonly Uint8Array[]): Trie {
  const most = 1 + patterns.reduce((sum, { length }) => sum + length, 0);
  const trie = {
    first: new Int32Array(most),
    sibling: new Int32Array(most),
    label: new Uint8Array(most),
    depth: new Int32Array(most),
    fallback: new Int32Array(most),
    longest: new Int32Array(most),
  };
  const { first, sibling, label, depth, longest } = trie;
  let count = 1;
  for (const pattern of patterns) {
    let node = 0;
    for (const byte of pattern) {
      const child = childOf(trie, node, byte) || count;
      if (child === count) {
        count += 1;
        label[child] = byte;
        depth[child] = (depth[node] as number) + 1;
        sibling[child] = first[node] as number;
        first[node] = child;
      }
      node = child;
    }
    longest[node] = pattern.length;
  }
  linkFallbacks(trie);
  return trie;
}

/** Goes by depth, for what a node falls back to is shorter than it is. */
function linkFallbacks(trie: Trie): void {
  const { first, sibling, label, fallback, longest } = trie;
  const queue = [0];
  for (const node of queue) {
    for (let child = first[node] as number; child !== 0; child = sibling[child] as number) {
      queue.push(child);
      if (node === 0) continue;
      const byte = label[child] as number;
      let shorter = fallback[node] as number;
      while (shorter !== 0 && childOf(trie, shorter, byte) === 0) shorter = fallback[shorter] as number;
      const end = childOf(trie, shorter, byte);
      fallback[child] = end;
      longest[child] ||= longest[end] as number;
    }
  }
}

function childOf({ first, sibling, label }: Trie, node: number, byte: number): number {
  let child = first[node] as number;
  while (child !== 0 && label[child] !== byte) child = sibling[child] as number;
  return child;
}
