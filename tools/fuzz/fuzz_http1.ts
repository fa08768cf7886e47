/**
 * Compares our HTTP/1.1 parser with llhttp on damaged messages until they disagree or the time is up. Run: `node
 * tools/fuzz/fuzz_http1.ts [seconds] [seed]`. Prints the input of a disagreement and exits 1.
 */
import { Buffer } from 'node:buffer';
import { argv, exit, stdout } from 'node:process';
import * as fc from 'fast-check';
import { damagedText, reply, request } from './http1_arbitraries.ts';
import { findDisagreement, ourReply, ourRequests } from './http1_readings.ts';
import { llhttpReply, llhttpRequests } from './llhttp_oracle.ts';

const seconds = Number(argv[2] ?? 60);
const seed = Number(argv[3] ?? Date.now() % 2 ** 31);
const follower = 'GET /next HTTP/1.1\r\nHost: next.example\r\n\r\n';

const requestsAgree = fc.asyncProperty(
  fc.oneof(
    damagedText(request),
    fc.tuple(request, damagedText(request)).map((both) => both.join('')),
  ),
  async (text) => {
    const input = Buffer.from(text + follower, 'latin1');
    const problem = findDisagreement(ourRequests(input), await llhttpRequests(input));
    if (problem !== null) throw new Error(problem);
  },
);

const repliesAgree = fc.asyncProperty(damagedText(reply), async (text) => {
  const input = Buffer.from(text, 'latin1');
  const problem = findDisagreement(ourReply(input, 'GET'), await llhttpReply(input, 'GET'));
  if (problem !== null) throw new Error(problem);
});

let failed = false;
for (const [name, property] of [
  ['requests', requestsAgree],
  ['replies', repliesAgree],
] as const) {
  const result = await fc.check(property, { numRuns: 1e9, interruptAfterTimeLimit: (seconds * 1000) / 2, seed });
  stdout.write(
    `${name}: ${result.numRuns} inputs, seed ${seed}: ${result.failed ? 'DISAGREEMENT' : 'no disagreement'}\n`,
  );
  if (!result.failed) continue;
  failed = true;
  stdout.write(`${JSON.stringify(result.counterexample)}\n${String(result.errorInstance)}\n`);
}
exit(failed ? 1 : 0);
