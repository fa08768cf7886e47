import { getTableName } from 'drizzle-orm';
import { getTableConfig } from 'drizzle-orm/sqlite-core';
import { expect, test } from 'vitest';
import * as tables from '../store/tables.ts';
import { SEALED_KINDS } from './sealed_kinds.ts';

/** Columns that look sealed but are not part of a master key change, each with the reason. */
const OTHERS: ReadonlyMap<string, string> = new Map([
  ['device_codes.user_code_mac', 'lives ten minutes: a worker knows it under both keys'],
  ['signups.code_hash', 'lives minutes: a worker knows it under both keys'],
  ['sign_in_links.code_hash', 'a plain hash of a random code'],
  ['device_codes.code_hash', 'a plain hash of a random code'],
  ['mcp_codes.code_hash', 'a plain hash of a random code'],
  ['saml_answers.code_hash', 'a plain hash of a random code'],
  ['approvals.fingerprint', 'a plain hash of a request'],
  ['throttles.key', 'a count that begins anew under a new key'],
]);

test('every column with sealed data belongs to a kind of the master key change', () => {
  const columns = Object.values(tables).flatMap((table) =>
    getTableConfig(table).columns.map((column) => `${getTableName(table)}.${column.name}`),
  );
  const made = columns.filter((name) => /seal|cipher|mac$|fingerprint|code_hash|throttles[.]key/.test(name));
  const known = SEALED_KINDS.flatMap((kind) => kind.columns);
  expect([...made, 'installation.value'].toSorted()).toEqual([...known, ...OTHERS.keys()].toSorted());
});
