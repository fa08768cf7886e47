import { describe, expect, it } from 'vitest';
import { narrowing, parseScopes } from './narrowing.ts';

describe('--scope', () => {
  it('puts the fields of one secret together', () => {
    const read = parseScopes([
      'ci/github:repositories=website,docs',
      'vault://ci/github:permissions=contents=read,issues=write',
      'aws/deploy:policy={"Statement":[{"Resource":"arn:aws:s3:::b"}]}',
      'aws/deploy:duration_seconds=900',
      'idp/api:scopes=a b',
    ]);
    expect(read).toEqual({
      ok: true,
      value: [
        {
          path: 'ci/github',
          narrowing: { repositories: ['website', 'docs'], permissions: { contents: 'read', issues: 'write' } },
        },
        {
          path: 'aws/deploy',
          narrowing: { policy: '{"Statement":[{"Resource":"arn:aws:s3:::b"}]}', duration_seconds: 900 },
        },
        { path: 'idp/api', narrowing: { scopes: ['a', 'b'] } },
      ],
    });
  });

  it.each([
    ['ci/github', 'REFERENCE:FIELD=VALUE'],
    ['ghp_AAAAAAAAAAAAAAAA', 'REFERENCE:FIELD=VALUE'],
    ['https://api.github.com:scopes=a', 'REFERENCE:FIELD=VALUE'],
    ['ci/github:token=x', '"token"'],
    ['ci/github:repositories=', 'repositories'],
    ['ci/github:permissions=contents', 'permissions'],
    ['ci/github:permissions=contents=all', 'permissions'],
    ['aws/deploy:duration_seconds=soon', 'duration_seconds'],
  ])('refuses %s', (text, message) => {
    const read = parseScopes([text]);
    expect(read.ok ? '' : read.error.message).toContain(message);
    expect(read.ok ? '' : read.error.message).not.toContain('AAAAAAAA');
  });

  it('refuses a field that is given twice, which may be meant as more or as less', () => {
    expect(parseScopes(['ci/github:repositories=a', 'vault://ci/github:repositories=b']).ok).toBe(false);
  });

  it('a narrowing that narrows nothing is none', () => {
    expect(narrowing.safeParse({}).success).toBe(false);
    expect(narrowing.safeParse({ permissions: {} }).success).toBe(false);
  });
});
