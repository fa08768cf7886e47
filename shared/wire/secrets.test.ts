import { describe, expect, test } from 'vitest';
import { MAX_SECRET_BYTES } from '../model/secret.ts';
import { secretInput } from './secrets.ts';

const base = { path: 'user/demo', value: 's3cret' };

describe('a secret on the wire', () => {
  test('is personal by default', () => {
    expect(secretInput.parse(base).owner).toBe('personal');
  });

  test.each([
    ['vault://user/demo', 'vault path'],
    ['user/../demo', 'vault path'],
    ['mcp-servers/x', 'reserved'],
  ])('refuses the path %j', (path, problem) => {
    expect(secretInput.safeParse({ ...base, path }).error?.issues[0]?.message).toContain(problem);
  });

  test.each([
    ['', 'is empty'],
    ['a\0b', 'NUL'],
    ['\ud800', 'well-formed'],
    ['é'.repeat(MAX_SECRET_BYTES / 2 + 1), 'larger than 65536 bytes'],
  ])('refuses a value that cannot be in a header', (value, problem) => {
    expect(secretInput.safeParse({ ...base, value }).error?.issues[0]?.message).toContain(problem);
  });

  test('refuses an unknown key', () => {
    expect(secretInput.safeParse({ ...base, vlaue: 'x' }).error?.issues[0]?.code).toBe('unrecognized_keys');
  });
});
