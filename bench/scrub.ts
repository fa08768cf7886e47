/**
 * The cost of scrubbing: `node bench/scrub.ts`. Prints microseconds per 64 KiB of reply without a secret, by kind of reply
 * and length of secret, and for a reply head.
 */
import { performance } from 'node:perf_hooks';
import { SAMPLE_SEARCH_KEY } from '../shared/inject/testing/sample_requests.ts';
import { compileScrubPatterns } from '../shared/inject/scrub/patterns.ts';
import { scrubText } from '../shared/inject/scrub/scrub_text.ts';
import { StreamScrubber } from '../shared/inject/scrub/stream_scrubber.ts';

const CHUNK_BYTES = 64 * 1024;
const ROUNDS = 4000;

const REPLIES: Readonly<Record<string, (index: number) => number>> = {
  random: (index) => (Math.imul(index + 1, 2_654_435_761) >>> 13) & 0xff,
  json: (index) => '{"id":1234,"name":"a value of some length","ok":true},'.charCodeAt(index % 54),
  hex: (index) => '0123456789abcdef'.charCodeAt((Math.imul(index + 1, 2_654_435_761) >>> 11) & 15),
};

const SECRETS: Readonly<Record<string, string>> = {
  '8 bytes': 'pa55word',
  '40 bytes': 'ghp_16C7e42F292c6912E7710c838347Ae178B4a',
  '400 bytes': 'eyJhbGciOiJIUzI1NiJ9.'.repeat(19),
};

const HEAD_LINE = 'Set-Cookie: session=0123456789abcdef; Path=/; Secure; HttpOnly; SameSite=Lax';

/** Median microseconds of one call. */
function medianMicroseconds(run: () => void): number {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = performance.now();
    run();
    times.push((performance.now() - start) * 1000);
  }
  return times.toSorted((a, b) => a - b)[ROUNDS / 2] ?? 0;
}

function main(): void {
  for (const [secretName, secret] of Object.entries(SECRETS)) {
    const patterns = compileScrubPatterns([secret], SAMPLE_SEARCH_KEY);
    const scrubber = new StreamScrubber(patterns);
    for (const [replyName, byteAt] of Object.entries(REPLIES)) {
      // A Buffer, as returned by sockets and decoders.
      const chunk = Buffer.from(Uint8Array.from({ length: CHUNK_BYTES }, (_, index) => byteAt(index)));
      const microseconds = medianMicroseconds(() => scrubber.push(chunk));
      process.stdout.write(`${secretName} secret, 64 KiB of ${replyName}: ${microseconds.toFixed(1)} us\n`);
    }
    const line = medianMicroseconds(() => scrubText(HEAD_LINE, patterns));
    process.stdout.write(`${secretName} secret, one header line: ${line.toFixed(2)} us\n`);
    const compile = medianMicroseconds(() => compileScrubPatterns([secret], SAMPLE_SEARCH_KEY));
    process.stdout.write(`${secretName} secret, compiling: ${compile.toFixed(0)} us\n`);
  }
}

main();
