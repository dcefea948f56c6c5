/**
 * Gives the memory of a chunk that nobody needs any more back at once. The garbage collector would do so after another
 * 64 MB or so have come in, which is what a flood of large bodies would then hold on top of everything else.
 */
export function discard(chunk: Buffer): void {
  const { buffer } = chunk;
  // A chunk that shares its memory with others is left alone.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === chunk.length) buffer.transfer(0);
}
