import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { SHAPED_SERVICES } from '../shared/model/credential_shapes.ts';
import { parseBindingTemplate } from '../shared/wire/binding_template.ts';
import { hostBindingInput } from '../shared/wire/host_binding.ts';
import { bindingsOfService, fieldsNeeded, parseSealedService } from '../shared/wire/sealed_service.ts';

const folder = new URL('services/', import.meta.url);
const files = readdirSync(folder);
const names = files.map((file) => file.replace('.yaml', ''));

function service(name: string) {
  const parsed = parseSealedService(parse(readFileSync(new URL(`${name}.yaml`, folder), 'utf8')));
  if (!parsed.ok) throw new Error(`${name}: ${parsed.error}`);
  return parsed.value;
}

const templateFolder = new URL('bindings/', import.meta.url);
const templates = readdirSync(templateFolder).map((file) => {
  const parsed = parseBindingTemplate(parse(readFileSync(new URL(file, templateFolder), 'utf8')));
  if (!parsed.ok) throw new Error(`${file}: ${parsed.error.message}`);
  return parsed.value;
});

function templateNamed(name: string) {
  const found = templates.find((template) => template.name === name);
  if (found === undefined) throw new Error(`there is no template ${name}`);
  return found;
}

const EVERYTHING = {
  host: 'registry.example.test',
  username: 'octo',
  access_key_id: 'AKIAIOSFODNN7EXAMPLE',
  region: 'eu-central-1',
  service: 'dynamodb',
};
const inputOf = (values: object) => ({ values, credentialRef: 'vault://user/demo', owner: 'personal' });

describe.each(names)('service %s', (name) => {
  test('is named after its file', () => {
    expect(service(name).name).toBe(name);
  });

  test('creates valid bindings to one credential once its values are given', () => {
    const made = bindingsOfService(service(name), templates, inputOf(EVERYTHING));
    const bindings = made.ok ? made.value.map((binding) => hostBindingInput.parse(binding)) : [];
    expect(bindings).toHaveLength(service(name).bindings.length);
    expect(new Set(bindings.map((binding) => binding.credential_ref))).toEqual(new Set(['vault://user/demo']));
    expect(bindings.filter((binding) => binding.keep_cookies === true)).toEqual([]);
  });

  test('asks for exactly the values that its templates leave open', () => {
    const { asks, bindings } = service(name);
    const needed = bindings.flatMap(({ template }) => fieldsNeeded(templateNamed(template)));
    expect(Object.keys(asks).toSorted()).toEqual([...new Set(needed)].toSorted());
  });

  test('names the missing values', () => {
    const made = bindingsOfService(service(name), templates, inputOf({}));
    const needed = service(name)
      .bindings.filter(({ optional }) => optional !== true)
      .flatMap(({ template }) => fieldsNeeded(templateNamed(template)));
    expect(made.ok ? [] : made.error.toSorted()).toEqual([...new Set(needed)].toSorted());
  });

  test('names a connector of the catalog, or none', () => {
    const connectors = readdirSync(new URL('connectors/', import.meta.url)).map(
      (file) => `catalog/${file.replace('.yaml', '')}`,
    );
    expect([undefined, ...connectors]).toContain(service(name).connector);
  });
});

test('the placeholder variable of a template belongs to its service', () => {
  for (const { bindings, variables } of names.map(service)) {
    const handed = bindings.flatMap(({ template }) => {
      const sentinel = templates.find((each) => each.name === template)?.binding['sentinel'];
      return typeof sentinel === 'object' && sentinel !== null && 'env' in sentinel ? [String(sentinel.env)] : [];
    });
    expect(handed.filter((variable) => !variables.includes(variable) && variable !== 'GHCR_TOKEN')).toEqual([]);
  }
});

test('no two services claim the same variable or vault path', () => {
  const variables = names.flatMap((name) => service(name).variables);
  const paths = names.map((name) => service(name).secret);
  expect(variables).toEqual([...new Set(variables)]);
  expect(paths).toEqual([...new Set(paths)]);
});

test('GitHub has a binding for its API, git, uploads and container registry', () => {
  expect(hostsOf('github', {})).toEqual(['api.github.com', 'github.com', 'uploads.github.com', 'ghcr.io']);
});

test.each(['github', 'gitlab', 'npm', 'pypi', 'aws', 'docker', 'openai', 'anthropic'])('has %s', (name) => {
  expect(names).toContain(name);
});

function hostsOf(name: string, values: object): readonly unknown[] {
  const made = bindingsOfService(service(name), templates, inputOf(values));
  return made.ok ? made.value.map((binding) => binding['host']) : [];
}

test('an optional template is used only if its values are given', () => {
  const { service: _service, ...without } = EVERYTHING;
  expect(hostsOf('aws', EVERYTHING)).toContain('dynamodb.eu-central-1.amazonaws.com');
  expect(hostsOf('aws', without)).toEqual(['*.s3.eu-central-1.amazonaws.com', 's3.eu-central-1.amazonaws.com']);
});

test('most services of known credential shapes can be sealed by name', () => {
  const without = SHAPED_SERVICES.filter((name) => !names.includes(name));
  expect(without).toEqual(['openrouter', 'huggingface', 'digitalocean', 'sendgrid']);
});
