import { Buffer } from 'node:buffer';
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { damagedText, reply, request } from '../../../tools/fuzz/http1_arbitraries.ts';
import { findDisagreement, ourReply, ourRequests } from '../../../tools/fuzz/http1_readings.ts';
import { llhttpReply, llhttpRequests } from '../../../tools/fuzz/llhttp_oracle.ts';
import type { Reading } from '../../../tools/fuzz/llhttp_oracle.ts';

const corpusSchema = z.array(
  z.strictObject({
    name: z.string(),
    /** Bytes, as latin1. */
    input: z.string(),
    /** `accept`, or the reason of our refusal, or `truncated`. */
    ours: z.string(),
    llhttp: z.enum(['accept', 'refuse']),
    /** Why the two differ. */
    why: z.string().optional(),
  }),
);

function corpus(name: string): z.infer<typeof corpusSchema> {
  return corpusSchema.parse(JSON.parse(readFileSync(new URL(`corpus/${name}.json`, import.meta.url), 'utf8')));
}

function verdict(reading: Reading): string {
  if (reading.end === 'refused') return reading.reason;
  return reading.end === 'complete' ? 'accept' : 'truncated';
}

/** One case of the corpus: both verdicts, and whether a difference is explained. */
function comparison(ours: Reading, llhttp: Reading): unknown {
  const isSame = (ours.end === 'complete') === (llhttp.end === 'complete');
  return { ours: verdict(ours), llhttp: llhttp.end === 'complete' ? 'accept' : 'refuse', explained: !isSame };
}

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');

describe('requests of the corpus', () => {
  it.each(corpus('http1_requests'))('$name: $ours', async ({ input, ours, llhttp, why }) => {
    const [mine, theirs] = [ourRequests(bytes(input)), await llhttpRequests(bytes(input))];
    expect(comparison(mine, theirs)).toEqual({ ours, llhttp, explained: why !== undefined });
    expect(findDisagreement(mine, theirs)).toBeNull();
  });
});

describe('replies of the corpus', () => {
  it.each(corpus('http1_replies'))('$name: $ours', async ({ input, ours, llhttp, why }) => {
    const [mine, theirs] = [ourReply(bytes(input), 'GET'), await llhttpReply(bytes(input), 'GET')];
    expect(comparison(mine, theirs)).toEqual({ ours, llhttp, explained: why !== undefined });
    expect(findDisagreement(mine, theirs)).toBeNull();
  });
});

describe('agreement with llhttp', () => {
  const follower = 'GET /next HTTP/1.1\r\nHost: next.example\r\n\r\n';

  it('holds for every legal request, and for its end', async () => {
    const property = fc.asyncProperty(request, async (text) => {
      const ours = ourRequests(bytes(text + follower));
      expect(ours.messages.length).toBe(2);
      expect(findDisagreement(ours, await llhttpRequests(bytes(text + follower)))).toBeNull();
    });
    await fc.assert(property, { numRuns: 600 });
  });

  it('holds for every legal reply', async () => {
    const property = fc.asyncProperty(reply, async (text) => {
      const ours = ourReply(bytes(text), 'GET');
      expect(ours.messages.length).toBe(1);
      expect(findDisagreement(ours, await llhttpReply(bytes(text), 'GET'))).toBeNull();
    });
    await fc.assert(property, { numRuns: 600 });
  });

  it('holds for damaged requests if both accept', async () => {
    const property = fc.asyncProperty(damagedText(request), async (text) => {
      const input = bytes(text + follower);
      expect(findDisagreement(ourRequests(input), await llhttpRequests(input))).toBeNull();
    });
    await fc.assert(property, { numRuns: 2000 });
  });

  it('holds for damaged replies if both accept', async () => {
    const property = fc.asyncProperty(damagedText(reply), async (text) => {
      expect(findDisagreement(ourReply(bytes(text), 'GET'), await llhttpReply(bytes(text), 'GET'))).toBeNull();
    });
    await fc.assert(property, { numRuns: 2000 });
  });
});
