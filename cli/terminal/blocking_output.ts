import { writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import { errorCode } from '../../shared/model/error_code.ts';

/** How long to wait for a reader, if whoever gave us the stream has set it not to wait. */
const WAIT_MS = 5;

/** Writes to a descriptor without opening a stream of Node's on it, which would set a pipe not to wait for its reader. */
export function blockingOutput(descriptor: number): Writable {
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      try {
        writeAll(descriptor, chunk);
        done();
      } catch (error) {
        done(error instanceof Error ? error : new Error(String(error)));
      }
    },
  });
}

function writeAll(descriptor: number, bytes: Buffer): void {
  const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(descriptor, bytes, at);
    } catch (error) {
      if (errorCode(error) !== 'EAGAIN') throw error;
      Atomics.wait(never, 0, 0, WAIT_MS);
    }
  }
}
