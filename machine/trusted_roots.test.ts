import { getCACertificates } from 'node:tls';
import { expect, test } from 'vitest';
import { trustedRoots } from './trusted_roots.ts';

test("trusts Node's roots, the system's and the given ones, without duplicates", () => {
  const given = '-----BEGIN CERTIFICATE-----\ngiven\n-----END CERTIFICATE-----\n';
  const roots = trustedRoots([given, given]);
  const expected = [...getCACertificates('default'), ...getCACertificates('system'), given];
  expect(new Set(roots)).toEqual(new Set(expected));
  expect(roots).toHaveLength(new Set(expected).size);
});
