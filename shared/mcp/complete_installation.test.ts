import { describe, expect, test } from 'vitest';
import { completeInstallation } from './complete_installation.ts';
import type { InputValues } from './install/input_values.ts';
import type { RegistryEntry } from './registry_entry.ts';
import { installEntry, packageEntry, planOf, remoteEntry } from './testing/entries.ts';
import { SERVER_ID } from './testing/servers.ts';

const reference = (name: string) => `vault://mcp-servers/${SERVER_ID}/${name}`;
const withArguments = (...packageArguments: readonly object[]) => packageEntry({ packageArguments });
const withVariables = (...environmentVariables: readonly object[]) => packageEntry({ environmentVariables });
const namedArgument = (name: string, more: object = {}) => ({ type: 'named', name, ...more });

function problems(entry: RegistryEntry, values: InputValues = {}): readonly string[] {
  const completed = completeInstallation(planOf(entry), SERVER_ID, values);
  return completed.ok ? [] : completed.error.map(({ input, code }) => `${input} ${code}`);
}

function rest(entry: RegistryEntry, values: InputValues = {}): string {
  return installEntry(entry, values).command.slice(3).join(' ');
}

describe('secrets', () => {
  test('are stored in the vault, and the configuration refers to them', () => {
    const entry = withVariables({ name: 'API_KEY', isSecret: true, isRequired: true, description: 'A key' });
    expect(installEntry(entry, { API_KEY: 'hush' })).toMatchObject({
      env: { API_KEY: reference('API_KEY') },
      credentials: [{ name: 'API_KEY', value: 'hush' }],
      requiredCredentials: [],
    });
  });

  test('may be stored later if required', () => {
    const entry = withVariables({ name: 'API_KEY', isSecret: true, isRequired: true, description: 'A key' });
    expect(installEntry(entry)).toMatchObject({
      env: { API_KEY: reference('API_KEY') },
      credentials: [],
      requiredCredentials: [{ name: 'API_KEY', description: 'A key', required: true, secret: true }],
    });
  });

  test('are not referred to before they are stored if optional', () => {
    const entry = withVariables({ name: 'API_KEY', isSecret: true });
    expect(installEntry(entry)).toMatchObject({
      env: {},
      requiredCredentials: [{ name: 'API_KEY', required: false, secret: true }],
    });
  });

  test('are recognised by name if the publisher does not mark them', () => {
    const entry = withVariables(
      { name: 'ACME_TOKEN' },
      { name: 'MAX_TOKENS' },
      { name: 'dbPassword' },
      { name: 'PUBLIC_KEY' },
    );
    expect(planOf(entry).inputs.map(({ secret }) => secret)).toEqual([true, false, true, false]);
  });

  test('can be part of a value', () => {
    const token = { token: { isSecret: true, isRequired: true } };
    const entry = withVariables({ name: 'AUTH', value: 'Bearer {token}!', variables: token });
    const { env, credentials } = installEntry(entry, { token: 'hush' });
    expect([env, credentials]).toEqual([{ AUTH: `Bearer ${reference('token')}!` }, [{ name: 'token', value: 'hush' }]]);
  });

  test('are the whole value if text follows without a separator', () => {
    const entry = withVariables({ name: 'AUTH', value: '{token}abc', isRequired: true });
    expect(installEntry(entry)).toMatchObject({
      env: { AUTH: reference('AUTH') },
      requiredCredentials: [{ name: 'AUTH' }],
    });
  });

  test('have unique names that the vault accepts', () => {
    const entry = remoteEntry({
      headers: [
        { name: 'X-API-Key', isRequired: true },
        { name: 'X_API_Key', isRequired: true },
        { name: 'SVC-Token', isRequired: true },
      ],
    });
    const names = installEntry(entry).requiredCredentials.map(({ name }) => name);
    expect(names).toEqual(['X_API_Key', 'X_API_Key_2', 'CREDENTIAL_Token']);
  });

  test('are never in the configuration, wherever an input is used', () => {
    const secret = { isSecret: true, isRequired: true };
    const local = packageEntry({
      packageArguments: [
        namedArgument('--token', secret),
        { type: 'positional', valueHint: 'pw', ...secret },
        namedArgument('--many', { ...secret, isRepeated: true }),
      ],
      environmentVariables: [{ name: 'A', ...secret }],
    });
    const values = { token: 'hush-1', pw: 'hush-2', many: 'hush-3', A: 'hush-4' };
    const { credentials, ...configuration } = installEntry(local, values);
    expect(credentials.map(({ value }) => value).toSorted()).toEqual(['hush-1', 'hush-2', 'hush-3', 'hush-4']);
    expect(JSON.stringify(configuration)).not.toContain('hush');
    expect(configuration.command).toContain(reference('token'));
    const remote = remoteEntry({
      url: 'https://a.example.com/mcp?k={api_key}',
      headers: [{ name: 'Authorization', value: 'Bearer {t}' }],
    });
    const called = installEntry(remote, { api_key: 'hush-5', t: 'hush-6' });
    expect(called).toMatchObject({
      url: `https://a.example.com/mcp?k=${reference('api_key')}`,
      headers: { Authorization: `Bearer ${reference('t')}` },
    });
  });
});

describe('values that are not secrets', () => {
  test('are written, from the input or the default', () => {
    const entry = withVariables(
      { name: 'LEVEL', default: 'info' },
      { name: 'REGION' },
      { name: 'MODE', value: 'fixed' },
    );
    expect(installEntry(entry).env).toEqual({ LEVEL: 'info', MODE: 'fixed' });
    expect(installEntry(entry, { LEVEL: 'debug', REGION: 'eu' }).env).toEqual({
      LEVEL: 'debug',
      REGION: 'eu',
      MODE: 'fixed',
    });
  });

  test('for a variable or header may be given later, like a credential', () => {
    const entry = withVariables({ name: 'SITE', isRequired: true, description: 'Where' });
    expect(installEntry(entry)).toMatchObject({
      env: { SITE: reference('SITE') },
      requiredCredentials: [{ name: 'SITE', description: 'Where', required: true, secret: false }],
    });
    expect(installEntry(entry, { SITE: 'a.example' })).toMatchObject({
      env: { SITE: 'a.example' },
      credentials: [],
      requiredCredentials: [],
    });
  });

  test('for an argument or address are required', () => {
    expect(problems(withArguments(namedArgument('--dir', { isRequired: true })))).toEqual(['dir missing']);
    expect(problems(remoteEntry({ url: 'https://{tenant}.example.com/mcp' }))).toEqual(['tenant missing']);
  });

  test.each([
    '<your value>',
    'YOUR_API_KEY',
    'your-key-here',
    '/path/to/file',
    'xxxx',
    '...',
    '${input:x}',
    'changeme',
  ])('are never the placeholder %s', (value) => {
    const fixed = withVariables({ name: 'SITE', value });
    expect(installEntry(fixed).env).toEqual({ SITE: reference('SITE') });
    const byDefault = withVariables({ name: 'SITE', default: value });
    expect(installEntry(byDefault).env).toEqual({});
  });

  test('fill the places of a template as one input', () => {
    const variables = { host: { isRequired: true }, port: { default: '80' } };
    const entry = withVariables(
      { name: 'A', value: 'http://{host}:{port}/', variables },
      { name: 'B', value: '{host}', variables },
    );
    expect(planOf(entry).inputs.map(({ name, goesTo }) => [name, goesTo])).toEqual([
      ['host', ['variable A', 'variable B']],
      ['port', ['variable A']],
    ]);
    expect(installEntry(entry, { host: 'h.example' }).env).toEqual({ A: 'http://h.example:80/', B: 'h.example' });
  });

  test('are two inputs if two things have the same name', () => {
    const entry = withArguments(namedArgument('--path'), namedArgument('path', { isRepeated: true }));
    expect(planOf(entry).inputs.map(({ name }) => name)).toEqual(['path', 'path-2']);
  });
});

describe('arguments', () => {
  test('are an option with its value, or a single word', () => {
    expect(rest(withArguments(namedArgument('--a'), namedArgument('--b=')), { a: '1', b: '2 3' })).toBe(
      '--a 1 --b=2 3',
    );
    expect(installEntry(withArguments(namedArgument('--b=')), { b: '2 3' }).command.at(-1)).toBe('--b=2 3');
  });

  test('are repeated', () => {
    const entry = withArguments(namedArgument('--dir', { isRepeated: true }), {
      type: 'positional',
      valueHint: 'file',
      isRepeated: true,
    });
    expect(rest(entry, { dir: ['a', 'b'], file: ['c', 'd'] })).toBe('--dir a --dir b c d');
    expect(problems(withArguments(namedArgument('--dir')), { dir: ['a', 'b'] })).toEqual(['dir invalid']);
  });

  test('have no value if they are yes-or-no', () => {
    const entry = withArguments(
      namedArgument('--on', { format: 'boolean' }),
      namedArgument('--off', { format: 'boolean' }),
      namedArgument('--maybe'),
    );
    expect(rest(entry, { on: 'true', off: 'false', maybe: 'true' })).toBe('--on --maybe');
    expect(rest(entry, { maybe: 'value' })).toBe('--maybe value');
    expect(problems(entry, { on: 'yes' })).toEqual(['on invalid']);
  });

  test('a value is never read as an option', () => {
    expect(installEntry(withArguments(namedArgument('--a')), { a: '--evil' }).command.at(-1)).toBe('--a=--evil');
    expect(problems(withArguments(namedArgument('-a')), { a: '-evil' })).toEqual(['a invalid']);
    expect(problems(withArguments({ type: 'positional', valueHint: 'x' }), { x: '--evil' })).toEqual(['x invalid']);
    expect(rest(withArguments({ type: 'positional', valueHint: 'x' }), { x: '-1.5' })).toBe('-1.5');
    expect(rest(withArguments({ type: 'positional', value: '{x}-y' }), { x: 'a' })).toBe('a-y');
  });

  test('a directory is mounted unchanged, or not at all', () => {
    const runtimeArguments = [namedArgument('-v', { value: '{dir}:/work', variables: { dir: { isRequired: true } } })];
    const entry = packageEntry({ registryType: 'oci', identifier: 'acme/demo:1.2.3', runtimeArguments });
    expect(installEntry(entry, { dir: '/srv/project' }).command.slice(4, 6)).toEqual(['-v', '/srv/project:/work']);
    for (const dir of [
      '/',
      '/etc',
      '/srv:/x',
      '/home/me',
      '../x',
      '~',
      '/var/run/docker.sock',
      '/srv/x:/work:ro,rshared',
    ]) {
      expect(problems(entry, { dir })).toEqual(['dir invalid']);
    }
    expect(planOf(entry).warnings.map(({ code }) => code)).toContain('docker_mount');
  });
});

describe('input validation', () => {
  const choices = withVariables({ name: 'UNIT', choices: ['c', 'f'], default: 'k' });
  const number = withVariables({ name: 'PORT', format: 'number' });
  test.each([
    ['one of the choices', choices, { UNIT: 'x' }, ['UNIT invalid']],
    ['though the default is as the publisher has it', choices, {}, []],
    ['a number', number, { PORT: '8x' }, ['PORT invalid']],
    ['a number that is one', number, { PORT: '-8.5' }, []],
    ['an input of the server', number, { OTHER: 'x' }, ['OTHER unknown']],
    [
      'an input of the server, whatever it is called',
      number,
      { ['__proto__']: 'x', constructor: 'x' },
      ['__proto__ unknown', 'constructor unknown'],
    ],
    ['no reference', withVariables({ name: 'A' }), { A: `x ${reference('B')}` }, ['A invalid']],
    ['no control character', withVariables({ name: 'A' }), { A: 'a\nb' }, ['A invalid']],
    ['no NUL', withVariables({ name: 'A', isSecret: true }), { A: 'a\0' }, ['A invalid']],
    ['lines only where a key has them', withVariables({ name: 'A', isSecret: true }), { A: 'a\nb' }, []],
    ['within bounds', withVariables({ name: 'A' }), { A: 'x'.repeat(8_001) }, ['A invalid']],
    ['a header', remoteEntry({ headers: [{ name: 'X-A' }] }), { 'X-A': 'a\u00e9' }, ['X-A invalid']],
    ['a host', remoteEntry({ url: 'https://{t}.example.com/' }), { t: 'evil.example/' }, ['t invalid']],
    ['a path', remoteEntry({ url: 'https://a.example.com/{p}/x' }), { p: '..' }, ['p invalid']],
  ])('%s', (_what, entry, values, expected) => {
    expect(problems(entry, values)).toEqual(expected);
  });

  test('and no problem quotes the input', () => {
    const completed = completeInstallation(planOf(number), SERVER_ID, { PORT: 'hush-hush' });
    expect(JSON.stringify(completed)).not.toContain('hush');
  });

  test('all problems are reported together', () => {
    const entry = withArguments(
      namedArgument('--a', { isRequired: true }),
      namedArgument('--b', { isRequired: true, format: 'number' }),
    );
    expect(problems(entry, { b: 'x', c: 'y' })).toEqual(['c unknown', 'a missing', 'b invalid']);
  });
});

describe('an address', () => {
  test('contains an input as one part of it, and nothing more', () => {
    const entry = remoteEntry({ url: 'https://{t}.example.com/{p}/mcp?a={q}&b=1', variables: { t: {}, p: {}, q: {} } });
    const { url, mode, transport } = installEntry(entry, { t: 'acme', p: 'a/../b?c#d', q: 'x&y=z' });
    expect([url, mode, transport]).toEqual([
      'https://acme.example.com/a%2F..%2Fb%3Fc%23d/mcp?a=x%26y%3Dz&b=1',
      'remote',
      'streamable-http',
    ]);
  });

  test('has headers; optional ones only if given', () => {
    const entry = remoteEntry({
      headers: [{ name: 'X-A' }, { name: 'X-B', value: 'fixed' }, { name: 'Accept', value: 'x' }],
    });
    expect(installEntry(entry).headers).toEqual({ 'X-B': 'fixed' });
    expect(installEntry(entry, { 'X-A': 'a' }).headers).toEqual({ 'X-A': 'a', 'X-B': 'fixed' });
  });
});
