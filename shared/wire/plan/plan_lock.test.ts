import { describe, expect, test } from 'vitest';
import { sealedStep } from './plan_lock.ts';

const STEP = {
  id: 'fetch',
  command: ['curl'],
  effect: 'read',
  hosts: ['api.example.com'],
  timeout_seconds: 60,
  mounts: [],
  collect: [],
};

describe('a sealed step', () => {
  test('is accepted unchanged', () => {
    expect(sealedStep.parse(STEP)).toEqual(STEP);
  });

  test.each([
    ['a pattern', { hosts: ['*.example.com'] }],
    ['a host in another spelling', { hosts: ['API.example.com'] }],
    ['a host with a port', { hosts: ['api.example.com:443'] }],
    ['an address', { hosts: ['10.0.0.1'] }],
    ['a host twice', { hosts: ['a.example.com', 'a.example.com'] }],
    ['an effect without hosts', { hosts: [] }],
    ['hosts without an effect', { effect: undefined }],
    ['no timeout', { timeout_seconds: undefined }],
    ['a field of another version', { privileged: true }],
  ])('is refused with %s', (_what, change) => {
    expect(sealedStep.safeParse({ ...STEP, ...change }).success).toBe(false);
  });

  test('has no reach without trust', () => {
    const { effect: _effect, ...rest } = STEP;
    expect(sealedStep.parse({ ...rest, hosts: [] }).effect).toBeUndefined();
  });
});
