import { expect, test } from 'vitest';
import { err, ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { createPostedMail } from './mail.ts';
import type { Outbound } from './outbound.ts';

const SERVICE = {
  url: 'https://mail.internal.example.test/send',
  token: new Secret('planted-token'),
  from: 'a@b.test',
};
const MESSAGE = { to: 'kim@acme.test', subject: 'Hello', text: 'text' };

test.each<[Awaited<ReturnType<Outbound['call']>>, string]>([
  [
    err({ reason: 'upstream_unreachable', message: 'mail.internal.example.test could not be reached (ECONNREFUSED)' }),
    'the mail service could not be reached',
  ],
  [
    err({ reason: 'upstream_tls_failed', message: 'the certificate of mail.internal.example.test has expired' }),
    'the mail service has no valid certificate',
  ],
  [ok({ status: 503, contentType: '', body: new Uint8Array() }), 'the mail service answered with status 503'],
])('a failure names neither the host of the mail service nor who the mail is for', async (answer, message) => {
  const mail = createPostedMail(SERVICE, { call: async () => answer }, () => 0);
  expect(await mail.send(MESSAGE)).toEqual(err({ reason: 'mail_failed', message }));
});
