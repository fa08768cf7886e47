import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isId, newId } from './ids.ts';

const bytes = fc.uint8Array({ minLength: 16, maxLength: 16 });

describe('ids', () => {
  test('every id has its prefix and 26 characters of the alphabet', () => {
    fc.assert(
      fc.property(bytes, (random) => {
        const id = newId('bnd', random);
        expect(id).toHaveLength(30);
        expect(isId('bnd', id)).toBe(true);
        expect(isId('sec', id)).toBe(false);
      }),
    );
  });

  test('different bytes give different ids', () => {
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        expect(newId('evt', a) === newId('evt', b)).toBe(a.every((byte, index) => byte === b[index]));
      }),
    );
  });

  test('ids made with a time sort by it', () => {
    const time = fc.integer({ min: 0, max: 2 ** 48 - 1 });
    fc.assert(
      fc.property(bytes, bytes, time, time, (a, b, earlier, later) => {
        fc.pre(earlier < later);
        expect(newId('evt', a, earlier) < newId('evt', b, later)).toBe(true);
      }),
    );
  });

  test('an id needs exactly 16 random bytes', () => {
    expect(() => newId('usr', new Uint8Array(15))).toThrow('16 random bytes');
  });

  test.each([
    'bnd_',
    'bnd_8zzzzzzzzzzzzzzzzzzzzzzzzz',
    'bnd_0000000000000000000000000i',
    ' bnd_00000000000000000000000000',
  ])('refuses %j as an id', (text) => {
    expect(isId('bnd', text)).toBe(false);
  });
});
