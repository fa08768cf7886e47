import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { WELL_KNOWN_NAMES, hashNameCharacter, lowerCaseName } from './http1_field_names.ts';

function lowerCase(name: string): string {
  let hash = 0;
  for (let at = 0; at < name.length; at += 1) hash = hashNameCharacter(hash, name.charCodeAt(at));
  return lowerCaseName(`..${name}: v`, 2, 2 + name.length, hash);
}

it('lower-cases every well-known name from any case', () => {
  for (const name of WELL_KNOWN_NAMES) {
    expect([lowerCase(name), lowerCase(name.toUpperCase())]).toEqual([name, name]);
  }
});

it('lower-cases any token like toLowerCase, also one that shares a hash with a well-known name', () => {
  const token = fc.string({
    unit: fc.constantFrom(..."!#$%&'*+-.^_`|~0189abyzABYZ".split('')),
    minLength: 1,
    maxLength: 20,
  });
  const property = fc.property(token, (name) => {
    expect(lowerCase(name)).toBe(name.toLowerCase());
  });
  fc.assert(property);
  // These differ from a well-known name only in the bit that the hash ignores.
  for (const twin of ['host\x00', 'x\x0dapi\x0dkey', 'content\x0dlength']) expect(lowerCase(twin)).toBe(twin);
});
