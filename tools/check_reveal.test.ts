import { describe, expect, it } from 'vitest';
// @ts-expect-error plain JavaScript, so that the system's Node can run it
import { revealProblems, reveals } from './check_reveal.mjs';

describe('check_reveal', () => {
  it.each([
    'const text = secret.reveal();',
    'const text = secret?.reveal();',
    'const text = secret\n  .reveal();',
    "const text = secret['reveal']();",
    'const { reveal } = secret;',
    'const { reveal: open } = secret;',
    'secrets.map(Secret.prototype.reveal.call);',
    "const url = 'https://example.test'; secret.reveal();",
  ])('finds %j', (source) => {
    expect(reveals(source)).toBe(true);
  });

  it.each([
    '// never secret.reveal() here',
    '/* `reveal()` is called\n * elsewhere: x.reveal() */',
    'revealed.value',
    'x.revealAll()',
  ])('allows %j', (source) => {
    expect(reveals(source)).toBe(false);
  });

  it('names an unlisted file that reveals, and a listed one that does not', () => {
    const files = { 'shared/a.ts': 's.reveal()', 'shared/b.ts': 's.reveal()', 'shared/c.ts': '' };
    expect(revealProblems(files, { 'shared/b.ts': 'writes it', 'shared/c.ts': 'did once' })).toEqual([
      expect.stringContaining('shared/a.ts reveals a Secret'),
      expect.stringContaining('shared/c.ts is in MAY_REVEAL'),
    ]);
  });

  it('lets the type itself define the method', () => {
    expect(revealProblems({ 'shared/model/secret.ts': 'const { reveal } = this; this.reveal()' }, {})).toEqual([]);
  });
});
