import { expect, test } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import type { RegistryPage } from './registry_client.ts';
import { forVisitors, openRegistry } from './registry.ts';

const URL_OF_A = 'https://registry.example/a';
const URL_OF_B = 'https://registry.example/b';
const MINUTE_MS = 60_000;

const page = (characters: number): RegistryPage => {
  const record = {
    name: 'a/b',
    description: '',
    version: '1',
    state: 'active' as const,
    isLatest: true,
    updatedAt: '',
  };
  const document = 'x'.repeat(characters);
  const searched = { title: '', identifiers: [], transports: [], registryTypes: [], needsSecret: null };
  return { records: [{ ...record, ...searched, document }], nextCursor: null, skipped: 0 };
};
const problem = (
  reason: 'not_found' | 'bad_reply' | 'unavailable' | 'too_many_requests',
  seconds: number | null = null,
) => err({ reason, message: 'no', retryAfterSeconds: seconds });

test('a reply is fresh for 15 minutes, and still available after that', () => {
  const { responses } = openRegistry('', null);
  responses.note(URL_OF_A, ok(page(10)), 0);
  expect(responses.findFresh(URL_OF_A, 15 * MINUTE_MS - 1)).not.toBeNull();
  expect(responses.findFresh(URL_OF_A, 15 * MINUTE_MS)).toBeNull();
  expect(responses.find(URL_OF_A)).not.toBeNull();
});

test('replies use a limited amount of memory: the oldest are dropped', () => {
  const { responses } = openRegistry('', null);
  for (let index = 0; index < 30; index += 1) responses.note(`${URL_OF_A}${index}`, ok(page(1024 * 1024)), 0);
  const kept = Array.from({ length: 30 }, (_, index) => responses.find(`${URL_OF_A}${index}`)).filter((each) => each);
  expect(kept.length).toBeGreaterThan(8);
  expect(kept.length).toBeLessThanOrEqual(12);
  expect(responses.find(`${URL_OF_A}29`)).not.toBeNull();
});

test.each([
  ['unavailable', null, 5_000, true],
  ['too_many_requests', 90, 90_000, true],
  ['bad_reply', null, 10_000, false],
  ['not_found', null, 30_000, false],
] as const)('%s is remembered for a while', (reason, seconds, forMs, isOfAll) => {
  const { responses } = openRegistry('', null);
  responses.note(URL_OF_A, problem(reason, seconds), 0);
  expect(responses.problem(URL_OF_A, forMs - 1, 100)?.reason).toBe(reason);
  expect(responses.problem(URL_OF_B, forMs - 1, 100)?.reason).toBe(isOfAll ? reason : undefined);
  expect(responses.problem(URL_OF_A, forMs, 100)).toBeNull();
});

test('an entry that the registry no longer has is not shown from the cache', () => {
  const { responses } = openRegistry('', null);
  responses.note(URL_OF_A, ok(page(10)), 0);
  responses.note(URL_OF_A, problem('not_found'), 1);
  expect(responses.find(URL_OF_A)).toBeNull();
});

test('calls to the registry are limited per minute, to half for callers who are not signed in', () => {
  const registry = openRegistry('', null);
  const visited = forVisitors(registry);
  const mayAsk = (of: typeof registry) => of.responses.problem(URL_OF_A, 1, of.mostCalls) === null;
  let calls = 0;
  for (; mayAsk(visited) && calls < 1_000; calls += 1) registry.responses.countCall(1);
  expect([calls, mayAsk(registry)]).toEqual([120, true]);
  for (; mayAsk(registry) && calls < 1_000; calls += 1) registry.responses.countCall(1);
  expect([calls, registry.responses.problem(URL_OF_A, MINUTE_MS + 2, registry.mostCalls)]).toEqual([240, null]);
});
