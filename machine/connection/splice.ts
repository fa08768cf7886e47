import type { Connection } from './connection.ts';

/** Copies bytes with back pressure until the source ends, then ends the sink (half-close is kept). */
export async function splice(
  source: Connection,
  sink: Connection,
  transform?: { push(chunk: Uint8Array): Uint8Array[]; flush(): Uint8Array[] },
): Promise<void> {
  for (;;) {
    const ready = source.take();
    if (ready === undefined) source.expectGoodbye();
    const chunk = ready === undefined ? await source.nextChunk() : ready;
    const pieces = chunk === null ? (transform?.flush() ?? []) : (transform?.push(chunk) ?? [chunk]);
    let roomy = true;
    for (const piece of pieces) roomy = sink.write(piece);
    if (chunk === null) break;
    if (!roomy) await sink.waitForDrain();
    if (sink.closed) break;
  }
  sink.end();
}
