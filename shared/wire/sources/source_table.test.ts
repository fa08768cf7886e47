import { describe, expect, test } from 'vitest';
import { choicesOf, formOf } from './field_form.ts';
import { narrowing } from './narrowing.ts';
import { fieldsOf, SOURCE_KINDS, SOURCE_TABLE } from './source_table.ts';

const FORMS = new Map(Object.entries(narrowing.shape).map(([name, schema]) => [name, formOf(schema)]));

describe.each(Object.entries(SOURCE_TABLE))('the kind %s', (name, kind) => {
  const schemas = new Map(Object.entries(kind.fields).map(([field, { schema }]) => [field, schema]));

  test('has the name of its entry in its sources', () => {
    expect(kind.schema.shape.kind.value).toBe(name);
  });

  test('has the fields by which it is narrowed, written in the same form', () => {
    const forms = [...schemas].map(([field, schema]): [string, string] => [field, formOf(schema)]);
    const narrowed = Object.keys(kind.narrowedBy).map((field) => [field, FORMS.get(field)]);
    expect(forms).toEqual(expect.arrayContaining(narrowed));
  });

  test('offers first what a field is if a source does not say it', () => {
    const chosen = [...schemas].map(([field, schema]) => [
      field,
      choicesOf(schema)?.[0],
      schema.safeParse(undefined).data,
    ]);
    expect(chosen.filter(([, first, byDefault]) => first !== undefined && (byDefault ?? first) !== first)).toEqual([]);
  });

  test('has a revocation_url if that is by what its values are revoked', () => {
    expect(kind.revokes === 'by revocation_url').toBe(schemas.has('revocation_url'));
  });
});

test('only what a machine gives has no key', () => {
  const withKey = Object.values(SOURCE_TABLE).filter(({ keys, keyHint }) => keys.length > 0 && keyHint !== '');
  expect(withKey).toEqual(SOURCE_KINDS.map((kind) => SOURCE_TABLE[kind]));
});

test('fields that take a list, pairs or a number are known by their schemas', () => {
  const forms = Object.entries(fieldsOf('github_app')).map(([name, { schema }]) => [name, formOf(schema)]);
  expect(Object.fromEntries(forms)).toEqual({
    app_id: 'text',
    installation_id: 'text',
    repositories: 'list',
    permissions: 'pairs',
    api_url: 'text',
  });
  expect(formOf(fieldsOf('aws_assume_role')['duration_seconds']?.schema ?? narrowing)).toBe('number');
});
