import { expect, test } from 'vitest';
import { newSigningSecret, webhookHeaders } from './webhook_sink.ts';

test('signs as an independent implementation of Standard Webhooks does', async () => {
  const headers = await webhookHeaders(
    { signing: 'whsec_MfKQ9r8GKYqTwjUPD8ILPZIo2LaLaSw' },
    { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', nowMs: 1_614_265_330_000 },
    new TextEncoder().encode('{"test": 2432232314}'),
  );
  expect(headers).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,APzAMjTmGJD1CHe1l3psPWqHBNm7LdzUn7zexTcoEpk=',
  });
});

test('makes secrets of 256 bits, each another', () => {
  const [one, two] = [newSigningSecret(), newSigningSecret()];
  expect(Buffer.from(one.slice('whsec_'.length), 'base64')).toHaveLength(32);
  expect(one).not.toBe(two);
});
