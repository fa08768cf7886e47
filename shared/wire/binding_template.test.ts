import { describe, expect, test } from 'vitest';
import { fillTemplate, parseBindingTemplate, placeholdersOf } from './binding_template.ts';

const FILE = {
  name: 'object-store',
  title: 'An object store',
  wire_form: 'Authorization: AWS4-HMAC-SHA256',
  source: { title: 'Its manual', url: 'https://docs.example.com/auth' },
  binding: {
    host: '*.s3.<region>.example.com',
    scheme: 'sigv4-resign',
    region: '<region>',
    access_key_id: '<access-key-id>',
    service: 's3',
    credential_ref: 'vault://<secret>',
    allowed_hosts: ['a.s3.<region>.example.com'],
  },
};
const GIVEN = { region: 'eu-1', access_key_id: 'AKID', credential_ref: 'vault://user/s3' };

function template() {
  const parsed = parseBindingTemplate(FILE);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

describe('binding template', () => {
  test('lists its placeholders with the fields that contain them', () => {
    expect(placeholdersOf(template())).toEqual([
      { name: 'region', fields: ['host', 'region', 'allowed_hosts'] },
      { name: 'access-key-id', fields: ['access_key_id'] },
      { name: 'secret', fields: ['credential_ref'] },
    ]);
  });

  test('a given field replaces its own value and fills the placeholders of its name', () => {
    expect(fillTemplate(template(), GIVEN)).toEqual({
      ok: true,
      value: { ...FILE.binding, ...GIVEN, host: '*.s3.eu-1.example.com', allowed_hosts: ['a.s3.eu-1.example.com'] },
    });
  });

  test("a given field replaces the template's, and fields may be added", () => {
    const filled = fillTemplate(template(), { ...GIVEN, host: 'store.example.net', effect: 'read' });
    expect(filled).toMatchObject({ ok: true, value: { host: 'store.example.net', effect: 'read' } });
  });

  test('names each unfilled placeholder', () => {
    const filled = fillTemplate(template(), { region: 'eu-1' });
    expect(filled).toMatchObject({ ok: false, error: { reason: 'unfilled_placeholder' } });
    expect(filled.ok ? '' : filled.error.message).toContain(
      '<access-key-id> (in access_key_id), <secret> (in credential_ref)',
    );
  });

  test('a placeholder given as a value stays open, and is not filled with itself', () => {
    expect(fillTemplate(template(), { ...GIVEN, region: '<region>' }).ok).toBe(false);
  });

  test.each([
    [{ name: 'Object Store' }, 'lower-case words'],
    [{ source: { title: 'x', url: 'http://docs.example.com' } }, 'source.url'],
    [{ binding: { ...FILE.binding, regoin: 'x' } }, 'unknown field "regoin": did you mean "region"?'],
    [{ binding: { ...FILE.binding, owner: 'enterprise' } }, 'unknown field "owner"'],
    [{ binding: { host: 'a.example', credential_ref: 'vault://<secret>' } }, 'has no scheme'],
    [{ binding: { ...FILE.binding, credential_ref: 'vault://user/demo' } }, 'must leave the secret open'],
    [{ extra: 1 }, 'extra'],
  ])('refuses a file with %j', (change, problem) => {
    const parsed = parseBindingTemplate({ ...FILE, ...change });
    expect(parsed).toMatchObject({ ok: false, error: { reason: 'invalid_template' } });
    expect(parsed.ok ? '' : parsed.error.message).toContain(problem);
  });
});
