import { describe, expect, test } from 'vitest';
import { sampleBinding } from '../model/testing/sample_binding.ts';
import type { HostBinding } from '../model/host_binding.ts';
import { findStrayPlaceholder } from './stray_placeholder.ts';

const SENTINEL = 'sk-svc-stand-in-not-a-key';
const swap = sampleBinding({ id: 'bnd_1', emit: { mechanism: 'sentinel-swap', sentinel: SENTINEL, env: 'DEMO' } });
const plain: HostBinding = { ...swap, id: 'bnd_2', emit: { mechanism: 'inject' } };
const basic = (text: string): string => `Basic ${btoa(text)}`;
const head = (name: string, value: string, target = '/') => ({
  target,
  fields: [{ name, value, line: `${name}: ${value}` }],
});

describe('a placeholder on its way to an unbound host', () => {
  test.each([
    ['a bearer token', head('authorization', `Bearer ${SENTINEL}`)],
    ['any header', head('x-api-key', SENTINEL)],
    ['a Basic password', head('authorization', basic(`user:${SENTINEL}`))],
    ['the query', head('accept', '*/*', `/v1?key=${SENTINEL}`)],
  ])('is found in %s', (_place, request) => {
    expect(findStrayPlaceholder([plain, swap], request)).toBe(swap);
  });

  test('is not found in a request without it, or without such a binding', () => {
    const request = head('authorization', `Bearer ${SENTINEL}`);
    expect(findStrayPlaceholder([plain], request)).toBeNull();
    expect(findStrayPlaceholder([], request)).toBeNull();
    expect(findStrayPlaceholder([swap], head('authorization', 'Bearer of-its-own'))).toBeNull();
  });
});
