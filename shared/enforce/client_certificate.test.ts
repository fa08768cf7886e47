import { expect, test } from 'vitest';
import type { ClientCertificate } from '../model/host_binding.ts';
import { compilePolicy } from '../resolve/resolve.ts';
import { enforceCertificate } from './client_certificate.ts';

const CERTIFICATE: ClientCertificate = {
  id: 'crt_1',
  host: 'api.example.com',
  credential: { owner: 'personal', path: 'user/certificate' },
};
const GET = { host: 'api.example.com', method: 'GET', fields: [], besideApprovals: false };
const POST = { ...GET, method: 'POST' };

test('without an effect every request of its host is admitted', () => {
  expect(enforceCertificate(CERTIFICATE, POST).ok).toBe(true);
  expect(enforceCertificate({ ...CERTIFICATE, effect: 'write' }, { ...POST, besideApprovals: true }).ok).toBe(true);
});

test.each([
  ['another host', CERTIFICATE, { ...GET, host: 'api.example.com:8443' }, 'host_not_allowed'],
  ['POST when the effect is read', { ...CERTIFICATE, effect: 'read' } as const, POST, 'effect_not_allowed'],
  [
    'a method override when the effect is read',
    { ...CERTIFICATE, effect: 'read' } as const,
    { ...GET, fields: [{ name: 'X-HTTP-Method-Override' }] },
    'effect_not_allowed',
  ],
  ['POST beside operations with approvals', CERTIFICATE, { ...POST, besideApprovals: true }, 'effect_not_allowed'],
])('%s is refused', (_what, certificate, request, reason) => {
  expect(enforceCertificate(certificate, request)).toMatchObject({ error: { reason } });
});

test('a certificate is for its exact host, which is intercepted even if it is listed as tunnelled', () => {
  const policy = compilePolicy([], [], ['*.example.com'], [CERTIFICATE]);
  expect(policy.certificateFor('api.example.com')).toBe(CERTIFICATE);
  expect(policy.certificateFor('a.api.example.com')).toBeNull();
  expect(policy.isTunnelled('api.example.com')).toBe(false);
  expect(policy.isTunnelled('www.example.com')).toBe(true);
});
