import { expect, test } from 'vitest';

import { MaskedReplies } from './masked_replies.ts';

const USE = { sessionId: 'ses_a', binding: 'bnd_1', host: 'api.example.test' };

test('pauses a binding for a session above the limit of masked replies, until it is resumed', () => {
  const masked = new MaskedReplies(2, () => true);
  expect([masked.count(USE), masked.count(USE)]).toEqual(['counted', 'counted']);
  expect(masked.refuse('ses_a', 'bnd_1')).toBeNull();
  expect([masked.count(USE), masked.count(USE)]).toEqual(['now_paused', 'paused']);
  expect(masked.refuse('ses_a', 'bnd_1')).toMatchObject({
    reason: 'binding_paused',
    message:
      'replies of api.example.test to this session contained its credential 4 times, which is more than SVC_MAX_MASKED_REPLIES allows; if that is expected, run `svc sessions resume ses_a`',
  });
  expect(masked.countsOfSession('ses_a')).toEqual([{ host: 'api.example.test', maskedReplies: 4, isPaused: true }]);
  expect(masked.resume('ses_a')).toEqual(['api.example.test']);
  expect([masked.refuse('ses_a', 'bnd_1'), masked.resume('ses_a')]).toEqual([null, []]);
  expect(masked.countsOfSession('ses_a')).toEqual([{ host: 'api.example.test', maskedReplies: 4, isPaused: false }]);
});

test('counts each session and each binding separately', () => {
  const masked = new MaskedReplies(1, () => true);
  masked.count(USE);
  masked.count(USE);
  expect(masked.refuse('ses_a', 'bnd_1')).not.toBeNull();
  expect([masked.refuse('ses_a', 'bnd_2'), masked.refuse('ses_b', 'bnd_1'), masked.refuse(null, 'bnd_1')]).toEqual([
    null,
    null,
    null,
  ]);
});

test('forgets sessions that have ended', () => {
  const live = new Set(['ses_a']);
  const masked = new MaskedReplies(1, (id) => live.has(id));
  masked.count(USE);
  live.clear();
  masked.count({ ...USE, sessionId: 'ses_b' });
  expect(masked.countsOfSession('ses_a')).toEqual([]);
});
