import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { credentialWithin, isStandIn, serviceOfShape } from './credential_shapes.ts';

/** Values of the documented shapes. Joined here, so that no scanner takes one for a real credential. */
const SAMPLES: readonly (readonly [service: string, value: string])[] = [
  ['github', ['ghp', 'a1B2'.repeat(9)].join('_')],
  ['github', ['github_pat', 'A1b2C3d4'.repeat(10)].join('_')],
  ['gitlab', ['glpat', 'aB3-_x'.repeat(4)].join('-')],
  ['npm', ['npm', 'a1B2'.repeat(9)].join('_')],
  ['pypi', ['pypi', 'AgEIcHlwaS5vcmc'.repeat(8)].join('-')],
  ['docker', ['dckr', 'pat', 'a1B2'.repeat(7)].join('_')],
  ['anthropic', ['sk', 'ant', 'api03', 'a1B2'.repeat(23)].join('-')],
  ['openai', ['sk', 'proj', 'a1B2'.repeat(12)].join('-')],
  ['gemini', ['AI', 'za', 'a1B2_'.repeat(7)].join('')],
  ['slack', ['xoxb', '123456789012', 'a1B2'.repeat(6)].join('-')],
  ['stripe', ['sk', 'live', 'a1B2'.repeat(6)].join('_')],
];

describe('the shape of a credential', () => {
  test.each(SAMPLES)('is recognised for %s', (service, value) => {
    expect(serviceOfShape(value)).toBe(service);
  });

  test.each(SAMPLES)('of %s has to be the whole value', (_service, value) => {
    expect(serviceOfShape(`${value}\n`)).toBeNull();
    expect(serviceOfShape(`see ${value}`)).toBeNull();
    expect(serviceOfShape(value.slice(0, 12))).toBeNull();
  });

  test.each([
    '',
    '/usr/bin',
    'true',
    'https://example.com/',
    'npm_config_registry',
    'sk-learn',
    '12345678901234567890',
  ])('is not seen in %j', (value) => {
    expect(serviceOfShape(value)).toBeNull();
  });

  test('is not seen in a placeholder of a binding template', () => {
    const value = `sk-ant-api03-svc-stand-in-not-a-key-${'x'.repeat(60)}`;
    expect(isStandIn(value)).toBe(true);
    expect(serviceOfShape(value)).toBeNull();
  });

  test('is not seen in a longer value, whatever follows', () => {
    fc.assert(
      fc.property(fc.constantFrom(...SAMPLES), fc.string({ maxLength: 8 }), fc.nat(20_000), ([, value], odd, count) => {
        expect(serviceOfShape(value + odd.repeat(count) + '\n')).toBeNull();
      }),
      { numRuns: 50 },
    );
  });
});

describe('a value that contains a credential', () => {
  test.each(SAMPLES)('is recognised for %s, also inside a URL or a header', (service, value) => {
    expect(credentialWithin(value)).toBe(service);
    expect(credentialWithin(`https://user:${value}@git.example.test/project`)).toBe(service);
    expect(credentialWithin(`Authorization: Bearer ${value}`)).toBe(service);
  });

  test('is recognised for a private key', () => {
    const key = ['-----BEGIN OPENSSH', 'PRIVATE KEY-----'].join(' ');
    expect(credentialWithin(`${key}\nAAAA`)).toBe('private key');
  });

  test.each(['', '/usr/bin:/bin', 'https://example.com/?a=b', 'ls=01;34:di=01', 'svc-stand-in-not-a-key-github'])(
    'is not seen in %j',
    (value) => {
      expect(credentialWithin(value)).toBeNull();
    },
  );
});
