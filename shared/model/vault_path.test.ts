import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  formatVaultReference,
  isReservedVaultPath,
  parseOwnVaultPath,
  parseVaultPath,
  parseVaultReference,
} from './vault_path.ts';

describe('vault paths', () => {
  test.each(['user/demo', 'a', '0/1', 'team/aws.prod_key-2', 'mcp-servers/mcp_01/GITHUB_TOKEN'])(
    'accepts %s',
    (path) => {
      expect(parseVaultPath(path)).toEqual({ ok: true, value: path });
    },
  );

  test.each([
    ['', 'is empty'],
    ['/user', 'empty segment 1'],
    ['user//demo', 'empty segment 2'],
    ['user/', 'empty segment 2'],
    ['User/demo', 'upper-case letters in segment 1'],
    ['user/../demo', 'segment 2'],
    ['user/.hidden', 'segment 2'],
    ['user/a b', 'segment 2'],
    ['user/ä', 'segment 2'],
    ['user/GITHUB_TOKEN', 'upper-case letters in segment 2'],
    ['mcp-servers/x/y/TOKEN', 'upper-case letters in segment 4'],
    ['a'.repeat(257), 'more than 256'],
  ])('refuses %j', (path, problem) => {
    const parsed = parseVaultPath(path);
    expect(parsed).toMatchObject({ ok: false, error: { reason: 'invalid_vault_path' } });
    expect(parsed.ok ? '' : parsed.error.message).toContain(problem);
  });

  test('a person may use no path below a reserved prefix', () => {
    for (const path of ['mcp-servers', 'mcp-servers/x', 'connectors/github', 'pending-login/plg_1']) {
      expect(parseOwnVaultPath(path)).toMatchObject({ ok: false, error: { reason: 'reserved_vault_path' } });
      expect(isReservedVaultPath(path)).toBe(true);
    }
    expect(parseOwnVaultPath('connectors-of-mine/github').ok).toBe(true);
  });
});

describe('vault references', () => {
  test('a reference is vault:// and the path', () => {
    expect(parseVaultReference('vault://user/demo')).toEqual({ ok: true, value: 'user/demo' });
    expect(formatVaultReference('user/demo')).toBe('vault://user/demo');
  });

  test('a secret given in place of its reference is never quoted', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[A-Z0-9]{12,40}$/),
        fc.constantFrom('', 'vault://', 'vault://user/'),
        (secret, prefix) => {
          const parsed = parseVaultReference(prefix + secret);
          return !parsed.ok && !parsed.error.message.includes(secret);
        },
      ),
    );
  });
});
