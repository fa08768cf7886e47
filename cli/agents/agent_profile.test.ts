import { readdirSync, readFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { duplicateBinding, type ValidHostBinding } from '../../shared/wire/host_binding.ts';
import { AGENT_TITLES } from './agent_names.ts';
import { bindingsOf, parseAgentProfile, type AgentProfile } from './agent_profile.ts';
import { makePlaceholder } from './placeholder_shape.ts';

const FOLDER = new URL('../../catalog/agents/', import.meta.url);
const FILES = readdirSync(FOLDER);

function catalogProfile(file: string): AgentProfile {
  const parsed = parseAgentProfile(parse(readFileSync(new URL(file, FOLDER), 'utf8')));
  if (!parsed.ok) throw new Error(`${file}: ${parsed.error.join('; ')}`);
  return parsed.value;
}

const LOGIN = {
  name: 'key',
  title: 'Demo API key',
  get: 'https://example.com/keys',
  prefix: 'demo_',
  secret: 'user/demo',
  variable: 'DEMO_API_KEY',
  placeholder: 'demo_{alnum:32}',
  bindings: [{ host: 'api.example.com', scheme: 'bearer' }],
};
const FILE = { path: '~/.demo/settings.json', login: 'key', write: 'merge', json: { key: '{placeholder}' } };
const PROFILE = {
  name: 'demo',
  title: 'Demo',
  command: 'demo',
  install: 'npm install -g demo',
  tried: null,
  source: { title: 'Demo: keys', url: 'https://example.com/docs' },
  logins: [LOGIN],
};
const problemsOf = (fields: object): readonly string[] => {
  const parsed = parseAgentProfile({ ...PROFILE, ...fields });
  return parsed.ok ? [] : parsed.error;
};
const loginProblems = (fields: object): readonly string[] => problemsOf({ logins: [{ ...LOGIN, ...fields }] });

test.each([
  ['~/.local/share/demo', true],
  ['~/.local/state/demo', true],
  ['~/.demo', true],
  ['~/.local/share/keyrings', false],
  ['~/.local/share', false],
  ['~/.local/share/demo/more', false],
  ['~/.local/bin/demo', false],
  ['~/.ssh', false],
])('the sandbox of an agent may show %s: %s', (path, isOwn) => {
  const problems = isOwn ? [] : ['sandbox.writes.0.path: belongs to another program'];
  expect(problemsOf({ sandbox: { writes: [{ path }] } })).toEqual(problems);
});

describe('the catalog of agents', () => {
  test('has a profile for every agent that is a command, with its title', () => {
    const titles = Object.fromEntries(FILES.map((file) => [file.replace(/\.yaml$/, ''), catalogProfile(file).title]));
    expect(titles).toEqual(AGENT_TITLES);
    for (const file of FILES) expect(`${catalogProfile(file).name}.yaml`).toBe(file);
  });

  test('binds one variable to the same hosts in the same way in every profile, so that agents share a login', () => {
    const known = new Map<string, string>();
    for (const { logins } of FILES.map(catalogProfile)) {
      for (const { variable, secret, bindings, placeholder } of logins) {
        const wanted = JSON.stringify({ secret, bindings, placeholder });
        expect(known.get(variable) ?? wanted).toBe(wanted);
        known.set(variable, wanted);
      }
    }
  });

  test('makes bindings that can stand beside each other', () => {
    const made: ValidHostBinding[] = [];
    for (const profile of FILES.map(catalogProfile)) {
      for (const login of profile.logins) {
        const placeholder = makePlaceholder(login.placeholder, randomBytes);
        for (const binding of bindingsOf(profile, login, { path: login.secret, placeholder })) {
          expect(duplicateBinding(made, binding)).toBeNull();
          expect(binding).toMatchObject({ emit_mechanism: 'sentinel-swap', sentinel: { env: login.variable } });
          made.push(binding);
        }
      }
    }
    expect(made.length).toBeGreaterThan(10);
  });
});

describe('a profile', () => {
  test('is accepted with a login and a file', () => {
    expect(problemsOf({ files: [FILE], variables: { DEMO_MODEL: 'x' }, clears: ['DEMO_TOKEN'] })).toEqual([]);
  });

  test.each(['*.example.com', '*.co.uk', '*', 'https://api.example.com', 'api.example.com:80', ''])(
    'does not send a credential to %j',
    (host) => {
      expect(loginProblems({ bindings: [{ host, scheme: 'bearer' }] })).not.toEqual([]);
    },
  );

  test.each([
    'LD_PRELOAD',
    'DYLD_INSERT_LIBRARIES',
    'NODE_OPTIONS',
    'NODE_EXTRA_CA_CERTS',
    'NODE_TLS_REJECT_UNAUTHORIZED',
    'PATH',
    'HOME',
    'BASH_ENV',
    'PYTHONPATH',
    'GIT_SSH_COMMAND',
    'EDITOR',
    'DOCKER_HOST',
    'OPENSSL_CONF',
    'HTTPS_PROXY',
    'no_proxy',
    'SSL_CERT_FILE',
    'SVC_TOKEN',
    'npm_config_registry',
    'A B',
  ])('does not touch the variable %s', (name) => {
    expect(problemsOf({ variables: { [name]: 'x' } })).not.toEqual([]);
    expect(problemsOf({ clears: [name] })).not.toEqual([]);
    expect(loginProblems({ variable: name })).not.toEqual([]);
    expect(loginProblems({ also: [name] })).not.toEqual([]);
  });

  test.each([
    '/etc/passwd.json',
    '~/../x.json',
    '~/.demo/../../x.json',
    '~/.demo//x.json',
    '~/notes.json',
    '~/.bashrc',
    '~/.ssh/config.json',
    '~/.svc/agents/x.json',
    '~/.config/git/x.json',
    '~/.docker/config.json',
  ])('does not write %s', (path) => {
    expect(problemsOf({ files: [{ ...FILE, path }] })).not.toEqual([]);
  });

  test.each([
    '/etc/acme',
    '../acme',
    'acme@latest',
    'acme@1.2.3',
    'git+https://x.example/a',
    'file:acme',
    'Acme',
    '@a/b/c',
    '',
  ])('installs only npm packages in an image, not %j', (name) => {
    expect(problemsOf({ container: { package: name, version: '1.2.3' } })).not.toEqual([]);
  });

  test.each(['latest', '^1.2.3', '1.2', '1.x', '>=1.2.3', ''])(
    'installs an exact version in an image, not %j',
    (version) => {
      expect(problemsOf({ container: { package: 'acme', version } })).not.toEqual([]);
    },
  );

  test('names the version once: what is tried, or its own', () => {
    expect(problemsOf({ container: { package: '@acme/coder', version: '1.2.3-beta.1' } })).toEqual([]);
    expect(problemsOf({ tried: '1.2.3', container: { package: 'acme' } })).toEqual([]);
    expect(problemsOf({ container: { package: 'acme' } })).toEqual([
      'container.version: is missing: nothing is tried, so name the exact version',
    ]);
    expect(problemsOf({ tried: '1.2.3', container: { package: 'acme', version: '2.0.0' } })).toEqual([
      'container.version: is there although a version is tried',
    ]);
  });

  test.each(['../x', '/bin/sh', 'a/../b', 'a/./b', '.bin/x', 'a/.hidden', 'a', 'a/{home}', 'a/b c', 'a//b'])(
    'does not accept %j as the program of a package',
    (program) => {
      expect(problemsOf({ container: { package: 'acme', version: '1.2.3', program } })).not.toEqual([]);
    },
  );

  test('takes a program that is another one for each processor', () => {
    const program = '@acme/coder-linux-{cpu}{musl}/bin/coder.exe';
    expect(problemsOf({ container: { package: 'acme', version: '1.2.3', program } })).toEqual([]);
  });

  test('sets in a container no variable that it may not set elsewhere, and writes no other file', () => {
    const container = { package: 'acme', version: '1.2.3' };
    const file = { path: '~/.demo/settings.json', write: 'merge', json: {} };
    expect(problemsOf({ container: { ...container, files: [file], variables: { DEMO: '1' } } })).toEqual([]);
    expect(problemsOf({ container: { ...container, variables: { LD_PRELOAD: 'x' } } })).not.toEqual([]);
    expect(problemsOf({ container: { ...container, files: [{ ...file, path: '~/.ssh/x.json' }] } })).not.toEqual([]);
  });

  test.each(['/bin/sh', 'sh -c x', '../x', '-x', ''])('does not run %j', (command) => {
    expect(problemsOf({ command })).not.toEqual([]);
  });

  test('has placeholders that nobody can guess, and that are no fixed text', () => {
    expect(loginProblems({ placeholder: 'demo_{alnum:15}' })).toEqual([
      'logins.0.placeholder: has fewer than 16 random characters: such a placeholder could be guessed',
    ]);
    expect(loginProblems({ placeholder: 'demo_{other:20}' })[0]).toContain('has a part in braces other than');
    expect(loginProblems({ placeholder: 'a b{alnum:20}' })[0]).toContain('has a space');
  });

  test.each([
    [{ secret: 'connectors/x' }, 'logins.0.secret'],
    [{ bindings: [{ host: 'api.example.com', scheme: 'header-template' }] }, 'logins.0.bindings.0.'],
    [{ bindings: [{ host: 'api.example.com', scheme: 'bearer', effect: 'read' }] }, 'logins.0.bindings.0.effect'],
    [{ bindings: [] }, 'logins.0.bindings'],
    [{ title: 'two\nlines' }, 'logins.0.title'],
    [{ title: 'hidden \u202e text' }, 'logins.0.title'],
  ])('names the wrong field of a login: %j', (fields, field) => {
    expect(loginProblems(fields).join('\n')).toContain(field);
  });

  test('names what it refers to', () => {
    expect(problemsOf({ logins: [LOGIN, LOGIN] })).toEqual(['logins.1.name: is there twice']);
    expect(problemsOf({ files: [{ ...FILE, login: 'other' }] })).toEqual(['files.0.login: names none of the logins']);
    expect(problemsOf({ colour: 'red' })[0]).toContain('colour');
  });
});

test('a placeholder has the shape, and is another one each time', () => {
  const made = Array.from({ length: 50 }, () => makePlaceholder('sk-{hex:8}-{digits:4}{base32:6}', randomBytes));
  for (const text of made) expect(text).toMatch(/^sk-[0-9a-f]{8}-\d{4}[A-Z2-7]{6}$/);
  expect(new Set(made).size).toBe(50);
});
