import { expect, test } from 'vitest';
import { listUnsaved } from './enterprise.ts';

const STORED = { name: 'Acme', allowed_domains: 'a.test\nb.test', providers: 'these', 'provider google': 'on' };

test('typed settings that differ from newer ones are listed, with boxes that were unticked', () => {
  const typed = { ...STORED, name: 'Mine', allowed_domains: 'a.test\r\nb.test', sso_required: 'on' };
  const { 'provider google': _, ...unticked } = typed;
  expect(listUnsaved(STORED, unticked)).toEqual([
    { field: 'name', stored: 'Acme', typed: 'Mine' },
    { field: 'sso_required', stored: '', typed: 'on' },
    { field: 'provider google', stored: 'on', typed: '' },
  ]);
});

test('no secret is listed, and no field that the settings do not have', () => {
  expect(listUnsaved(STORED, { ...STORED, oidc_client_secret: 'typed', revision: 'r', more: 'x' })).toEqual([]);
});
