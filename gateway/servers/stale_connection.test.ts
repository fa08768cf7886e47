import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { remoteServer } from '../../shared/mcp/testing/servers.ts';
import type { Downstream } from '../fronts/downstream.ts';
import { SecretMask } from './secret_mask.ts';
import { dropStale } from './stale_connection.ts';

const answers = (status: number) =>
  new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, `it answers ${status}`, { status, statusText: 'x' });
const resets = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

/** What is asked and lost when a request fails with `failure`, and the request without content with `refusal`. */
async function outcomeOf(failure: Error, refusal: Error | null, era = 'legacy'): Promise<readonly string[]> {
  const seen: string[] = [];
  const ask = (what: string) => () => {
    seen.push(what);
    return refusal === null ? Promise.resolve({}) : Promise.reject(refusal);
  };
  const client = { getProtocolEra: () => era, ping: ask('ping'), discover: ask('discover') };
  const downstream = z.custom<Downstream>().parse({ client, mask: new SecretMask([]) });
  const supervised = {
    server: remoteServer(),
    current: downstream,
    drop: () => Promise.resolve(void seen.push('drop')),
    lose: () => Promise.resolve(void seen.push('lose')),
  };
  if (await dropStale(supervised, downstream, failure)) seen.push('again');
  return seen;
}

test.each([502, 503, 504])('one request that is answered %d ends the connection of nobody', async (status) => {
  expect(await outcomeOf(answers(status), null)).toEqual(['ping']);
  expect(await outcomeOf(answers(status), null, 'modern')).toEqual(['discover']);
  expect(await outcomeOf(answers(status), answers(status))).toEqual(['ping', 'lose']);
});

test.each<readonly [string, Error, readonly string[]]>([
  ['an error of its own', ProtocolError.fromError(-32_601, 'no ping here'), []],
  ['429', answers(429), []],
  ['404, which ends the session', answers(404), ['lose']],
  ['nothing in time', new SdkError(SdkErrorCode.RequestTimeout, 'late'), ['lose']],
  ['a closed connection', resets(), ['lose']],
])('a server that closed a connection, and answers the ping with %s', async (_, refusal, after) => {
  expect(await outcomeOf(resets(), refusal)).toEqual(['ping', ...after]);
});
