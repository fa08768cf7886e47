import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fileTemplates } from './file_templates.ts';

test('the catalog is the same on a runtime without files', () => {
  const files = readdirSync(new URL('../../catalog/bindings', import.meta.url));
  expect(fileTemplates().map(({ name }) => `${name}.yaml`)).toEqual(files.toSorted());
  const listed = readFileSync(new URL('./workerd_templates.ts', import.meta.url), 'utf8');
  const imported = Array.from(listed.matchAll(/bindings\/([\w-]+\.yaml)'/g), ([, file]) => file ?? '');
  expect(imported.toSorted()).toEqual(files.toSorted());
});
