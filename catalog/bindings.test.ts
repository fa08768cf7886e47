import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { INJECTION_SCHEMES } from '../shared/model/host_binding.ts';
import { fillTemplate, parseBindingTemplate, placeholdersOf } from '../shared/wire/binding_template.ts';
import { hostBindingInput } from '../shared/wire/host_binding.ts';

const folder = new URL('bindings/', import.meta.url);
const files = readdirSync(folder);

/** What a person would give for each placeholder that the catalog uses. */
const GIVEN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'access-key-id': { access_key_id: 'AKIAIOSFODNN7EXAMPLE' },
  region: { region: 'eu-central-1' },
  'registry-host': { host: 'packages.example.com' },
  secret: { credential_ref: 'vault://user/demo' },
  site: { host: 'acme.atlassian.net' },
  username: { username: 'dev@example.com' },
};

function template(file: string) {
  const parsed = parseBindingTemplate(parse(readFileSync(new URL(file, folder), 'utf8')));
  if (!parsed.ok) throw new Error(`${file}: ${parsed.error.message}`);
  return parsed.value;
}

describe.each(files)('binding template %s', (file) => {
  test('is named after its file', () => {
    expect(`${template(file).name}.yaml`).toBe(file);
  });

  test('makes a valid binding once its placeholders are filled', () => {
    const values = Object.assign({}, ...placeholdersOf(template(file)).map(({ name }) => GIVEN[name]));
    const filled = fillTemplate(template(file), values);
    const checked = hostBindingInput.safeParse(filled.ok ? filled.value : filled.error);
    expect(checked.error?.issues).toBeUndefined();
  });

  test('is refused while a placeholder is open, naming it', () => {
    const unfilled = fillTemplate(template(file), {});
    expect(unfilled).toMatchObject({ ok: false, error: { reason: 'unfilled_placeholder' } });
    for (const { name } of placeholdersOf(template(file))) {
      expect(unfilled.ok ? '' : unfilled.error.message).toContain(`<${name}>`);
    }
    expect(hostBindingInput.safeParse(template(file).binding).success).toBe(false);
  });
});

test('every scheme has a template that shows it', () => {
  const shown = new Set(files.map((file) => template(file).binding['scheme']));
  expect(shown).toEqual(new Set(INJECTION_SCHEMES));
});

test('the region given fills the host of the S3 template', () => {
  const filled = fillTemplate(template('aws-s3.yaml'), {
    region: 'eu-central-1',
    access_key_id: 'AKIAIOSFODNN7EXAMPLE',
    credential_ref: 'vault://user/s3',
  });
  expect(filled).toMatchObject({
    ok: true,
    value: { host: '*.s3.eu-central-1.amazonaws.com', region: 'eu-central-1' },
  });
});
