import { expect, test } from 'vitest';
import type { KnownCertificate } from '../certificates/client_certificates.ts';
import { certificateFindings } from './certificate_findings.ts';

const NOW = Date.parse('2026-01-01T12:00:00.000Z');
const GOOD: KnownCertificate = {
  record: {
    id: 'crt_01m7yjc1391a5krmyacsgq908t',
    host: 'mtls.example.com',
    credential_ref: 'vault://user/client',
    created_at: '2025-01-01T00:00:00.000Z',
  },
  isStored: true,
  expiresAt: '2026-02-01T00:00:00.000Z',
};

const FIX = 'svc cert add mtls.example.com --cert FILE --key FILE';

test('a certificate that is stored and does not end soon is one ok, and so is one whose end is unknown', () => {
  expect(certificateFindings([], NOW)).toEqual([]);
  expect(certificateFindings([GOOD, { ...GOOD, expiresAt: null }], NOW)).toMatchObject([
    { level: 'ok', text: expect.stringContaining('2, each stored') },
  ]);
});

test.each([
  [{ expiresAt: '2026-01-31T00:00:00.000Z' }, 'warning', 'ends at 2026-01-31'],
  [{ expiresAt: '2026-01-01T12:00:00.000Z' }, 'problem', 'ended at 2026-01-01'],
  [{ isStored: false, expiresAt: null }, 'problem', 'is not stored'],
] as const)('%o is a %s', (change, level, text) => {
  const findings = certificateFindings([GOOD, { ...GOOD, ...change }], NOW);
  expect(findings).toMatchObject([{ level, text: expect.stringContaining(text), fix: FIX }]);
  expect(findings[0]?.text).toContain('vault://user/client of mtls.example.com');
});
