import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { INJECTION_SCHEMES } from '../shared/model/host_binding.ts';
import { fillTemplate, parseBindingTemplate, placeholdersOf } from '../shared/wire/binding_template.ts';
import { duplicateBinding, hostBindingInput, type ValidHostBinding } from '../shared/wire/host_binding.ts';

const folder = new URL('bindings/', import.meta.url);
const files = readdirSync(folder);

/** A sample value for each placeholder of the catalog. */
const GIVEN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'access-key-id': { access_key_id: 'AKIAIOSFODNN7EXAMPLE' },
  region: { region: 'eu-central-1' },
  'aws-api-host': { host: 'sqs.eu-central-1.amazonaws.com' },
  'azure-api-host': { host: 'management.azure.com' },
  'google-api-host': { host: 'storage.googleapis.com' },
  'index-host': { host: 'index.example.com' },
  'registry-host': { host: 'packages.example.com' },
  'upload-host': { host: 'upload.example.com' },
  'token-host': { host: 'auth.example.com' },
  secret: { credential_ref: 'vault://user/demo' },
  service: { service: 'dynamodb' },
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

  test('is a valid binding once its placeholders are filled', () => {
    const values = Object.assign({}, ...placeholdersOf(template(file)).map(({ name }) => GIVEN[name]));
    const filled = fillTemplate(template(file), values);
    const checked = hostBindingInput.safeParse(filled.ok ? filled.value : filled.error);
    expect(checked.error?.issues).toBeUndefined();
  });

  test('is refused by name while a placeholder is open', () => {
    const unfilled = fillTemplate(template(file), {});
    expect(unfilled).toMatchObject({ ok: false, error: { reason: 'unfilled_placeholder' } });
    for (const { name } of placeholdersOf(template(file))) {
      expect(unfilled.ok ? '' : unfilled.error.message).toContain(`<${name}>`);
    }
    expect(hostBindingInput.safeParse(template(file).binding).success).toBe(false);
  });
});

test('every scheme has a template that uses it', () => {
  const shown = new Set(files.map((file) => template(file).binding['scheme']));
  expect(shown).toEqual(new Set(INJECTION_SCHEMES));
});

test('the given region fills the host of the S3 template', () => {
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

/** One binding with every placeholder filled, as the control plane would store it. */
function filledBinding(file: string): ValidHostBinding {
  const values = Object.assign({}, ...placeholdersOf(template(file)).map(({ name }) => GIVEN[name]));
  const filled = fillTemplate(template(file), values);
  return hostBindingInput.parse(filled.ok ? filled.value : filled.error);
}

test('no two templates set the same sentinel, or different ones in the same variable', () => {
  const sentinels = files.flatMap((file) => filledBinding(file).sentinel ?? []);
  const values = sentinels.map(({ value }) => value);
  const variables = sentinels.flatMap(({ env }) => env ?? []);
  expect(values).toEqual([...new Set(values)]);
  expect(variables).toEqual([...new Set(variables)]);
});

test('every template is compatible with all others', () => {
  // Only this test gives these the same host; a person gives the host of their own registry.
  const ownHosts = files.map(filledBinding).filter(({ host }) => host !== GIVEN['registry-host']?.['host']);
  ownHosts.forEach((binding, at) => {
    expect(duplicateBinding(ownHosts.slice(0, at), binding)).toBeNull();
  });
});

test.each([
  ['bitbucket-api', 'bitbucket-git'],
  ['github-api', 'github-git', 'github-cli'],
  ['gitlab-api', 'gitlab-git'],
  ['linear', 'jira-cloud', 'slack', 'notion', 'sentry', 'stripe', 'cloudflare'],
  ['openai', 'anthropic', 'google-gemini'],
  ['npm', 'pypi-upload', 'python-index', 'docker-hub', 'docker-registry'],
  ['aws-s3', 'aws-s3-path-style', 'aws-generic'],
  ['aws-minted', 'azure-minted', 'google-minted'],
])('has %s, %s', (...names) => {
  expect(files).toEqual(expect.arrayContaining(names.map((name) => `${name}.yaml`)));
});
