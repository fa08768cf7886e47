import { expect, test } from 'vitest';
import { SOURCE_TABLE } from '../../../shared/wire/sources/source_table.ts';
import { MINTING_TABLE } from './source_table.ts';

test('a kind has a way to revoke its values if and only if it says that its provider does', () => {
  const revoking = Object.entries(MINTING_TABLE).filter(([, { revoke }]) => revoke !== undefined);
  const saying = Object.entries(SOURCE_TABLE).filter(([, { revokes }]) => revokes !== 'never');
  expect(new Set(revoking.map(([kind]) => kind))).toEqual(new Set(saying.map(([kind]) => kind)));
});
