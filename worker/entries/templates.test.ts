import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fileServices } from './file_services.ts';
import { fileTemplates } from './file_templates.ts';

test('the catalog is the same on a runtime without files', () => {
  const files = readdirSync(new URL('../../catalog/bindings', import.meta.url));
  expect(fileTemplates().map(({ name }) => `${name}.yaml`)).toEqual(files.toSorted());
  const listed = readFileSync(new URL('./workerd_templates.ts', import.meta.url), 'utf8');
  const imported = Array.from(listed.matchAll(/bindings\/([\w-]+\.yaml)'/g), ([, file]) => file ?? '');
  expect(imported.toSorted()).toEqual(files.toSorted());
});

test.each(['services', 'connectors'])('the %s of the catalog are the same on a runtime without files', (folder) => {
  const files = readdirSync(new URL(`../../catalog/${folder}`, import.meta.url));
  const listed = readFileSync(new URL('./workerd_services.ts', import.meta.url), 'utf8');
  const imported = Array.from(listed.matchAll(/catalog\/(\w+)\/([\w-]+\.yaml)'/g));
  const ofFolder = imported.filter(([, of]) => of === folder).map(([, , file]) => file ?? '');
  expect(ofFolder.toSorted()).toEqual(files.toSorted());
  expect(fileServices().length).toBeGreaterThan(15);
});
