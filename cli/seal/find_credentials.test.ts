import { describe, expect, test } from 'vitest';
import { findCredentials, type FileFormat, type KnownNames } from './find_credentials.ts';

const GITHUB = ['ghp', 'a1B2'.repeat(9)].join('_');
const OPENAI = ['sk', 'proj', 'a1B2'.repeat(12)].join('-');
const names: KnownNames = {
  serviceOfVariable: (name) => (name === 'NPM_TOKEN' ? 'npm' : null),
  serviceOfHost: (host) => (host === 'github.com' ? 'github' : null),
};
const findIn = (format: FileFormat, text: string) => findCredentials(format, text, names);
const replaceFirst = (format: FileFormat, text: string): string => {
  const [first] = findIn(format, text);
  return first === undefined ? text : text.slice(0, first.start) + first.write('PLACEHOLDER') + text.slice(first.end);
};
const auth = (text: string): string => Buffer.from(text).toString('base64');

describe('a credential is found, and its part of the text is exact', () => {
  test.each<[FileFormat, string, string, string, string]>([
    [
      'dotenv',
      `A=1\nexport MY_TOKEN="${GITHUB}" # mine\n`,
      'github',
      'MY_TOKEN',
      'A=1\nexport MY_TOKEN="PLACEHOLDER" # mine\n',
    ],
    ['dotenv', 'NPM_TOKEN=of-no-known-shape\n', 'npm', 'NPM_TOKEN', 'NPM_TOKEN=PLACEHOLDER\n'],
    [
      'npmrc',
      'a=b\n//npm.example.test/:_authToken=of-no-known-shape\n',
      'npm',
      'npm.example.test',
      'a=b\n//npm.example.test/:_authToken=${NPM_TOKEN}\n',
    ],
    [
      'netrc',
      'machine github.com\n  login octo\n  password not-a-known-shape\n',
      'github',
      'github.com',
      'machine github.com\n  login octo\n  password PLACEHOLDER\n',
    ],
    [
      'git-credentials',
      'https://octo:not-a-known-shape@github.com\n',
      'github',
      'github.com',
      'https://octo:PLACEHOLDER@github.com\n',
    ],
    [
      'aws',
      '[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = of/no+known-shape\n',
      'aws',
      'aws_secret_access_key',
      '[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = PLACEHOLDER\n',
    ],
    [
      'docker',
      `{"auths": {"https://github.com/v1/": {"auth": "${auth('octo:of-no-known-shape')}"}}}`,
      'github',
      'github.com',
      `{"auths": {"https://github.com/v1/": {"auth": "${auth('octo:PLACEHOLDER')}"}}}`,
    ],
    [
      'any',
      `github.com:\n    oauth_token: ${GITHUB}\n`,
      'github',
      'oauth_token',
      'github.com:\n    oauth_token: PLACEHOLDER\n',
    ],
    [
      'any',
      `{"OPENAI_API_KEY":"${OPENAI}","tokens":null}`,
      'openai',
      'OPENAI_API_KEY',
      '{"OPENAI_API_KEY":"PLACEHOLDER","tokens":null}',
    ],
  ])('%s', (format, text, service, name, after) => {
    expect(findIn(format, text)).toMatchObject([{ service, name }]);
    expect(replaceFirst(format, text)).toBe(after);
  });
});

test('what a file says besides is kept for the binding', () => {
  const aws = 'aws_access_key_id=AKIAIOSFODNN7EXAMPLE\naws_secret_access_key=of/no+known-shape\n';
  expect(findIn('aws', aws)[0]?.values).toEqual({ access_key_id: 'AKIAIOSFODNN7EXAMPLE' });
  expect(findIn('npmrc', '//npm.example.test/:_authToken=of-no-known-shape\n')[0]?.values).toEqual({
    host: 'npm.example.test',
  });
  expect(findIn('npmrc', '//npm.example.test:8443/x/:_authToken=of-no-known-shape\n')[0]?.values).toEqual({
    host: 'npm.example.test:8443',
  });
});

test.each<[FileFormat, string, string]>([
  ['any', `X=otherSecret:${GITHUB}\n`, 'github'],
  ['dotenv', `X=otherSecret:${GITHUB}\n`, 'github'],
  ['any', `${'x'.repeat(100)} otherSecret=${GITHUB}`, 'github'],
  ['any', `{"url":"otherSecret:${GITHUB}"}`, 'github'],
  ['dotenv', `${GITHUB}=${OPENAI}\n`, 'openai'],
  ['npmrc', `//${GITHUB}/:_authToken=of-no-known-shape\n`, 'npm'],
])('%s: the name of a credential is not taken for another secret: case %#', (format, text, name) => {
  expect(findIn(format, text).at(-1)).toMatchObject({ name });
});

test.each([`https://${GITHUB}:x-oauth-basic@github.com\n`, `https://${GITHUB}:a-filler@github.com\n`])(
  'a token in the place of the user is the credential, not the filler after it: case %#',
  (text) => expect(findIn('git-credentials', text).map(({ value }) => value)).toEqual([GITHUB]),
);

test('a line that is too long is no setting', () => {
  const [short = '', long = ''] = [4000, 4090].map(
    (length) => `//npm.example.test/${'a'.repeat(length)}:_authToken=of-no-known-shape\n`,
  );
  expect(findIn('npmrc', short + long)).toHaveLength(1);
});

test('at most 100 are listed', () => {
  const lines = findIn('dotenv', 'NPM_TOKEN=of-no-known-shape\n'.repeat(30_000)).map(({ line }) => line);
  expect(lines).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
});

test('each is found once, with its line', () => {
  const text = `A=${GITHUB}\n\nB=${OPENAI}\n`;
  expect(findIn('dotenv', text).map(({ name, line }) => [name, line])).toEqual([
    ['A', 1],
    ['B', 3],
  ]);
});

test.each<[FileFormat, string]>([
  ['dotenv', 'GITHUB_TOKEN=\nNPM_TOKEN=${OTHER}\nNPM_TOKEN=short\n'],
  ['dotenv', 'OPENAI_API_KEY=sk-svc-stand-in-not-a-key-openai\n'],
  ['npmrc', '//npm.example.test/:_authToken=${NPM_TOKEN}\nregistry=https://npm.example.test/\n'],
  ['npmrc', '//npm.example.test/:_authToken=<your token>\n'],
  ['docker', '{"auths": {"github.com": {}}, "credsStore": "desktop"}'],
  ['git-credentials', 'not a url\n'],
  ['any', ''],
])('%s: nothing is found in %j', (format, text) => {
  expect(findIn(format, text)).toEqual([]);
});

test.each(['dotenv', 'npmrc', 'netrc', 'git-credentials', 'aws', 'docker', 'any'] as const)(
  '%s: the time for a hostile file grows no faster than its size',
  (format) => {
    const hostile = [
      'machine a login b '.repeat(20_000),
      '='.repeat(200_000),
      '//a'.repeat(60_000),
      `//${'a'.repeat(1_000_000)}`,
      `//${'a'.repeat(4_000)}\n`.repeat(250),
      '"a":{"auth":"'.repeat(10_000),
    ];
    for (const text of hostile) expect(findIn(format, text)).toEqual([]);
  },
);
