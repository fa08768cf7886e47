import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { hostBindingInput } from '../../shared/wire/host_binding.ts';
import { makeSentinel } from './sentinel.ts';

const HOSTS = [
  ['api.github.com', /^ghp_[A-Za-z0-9]{36}$/],
  ['github.com', /^ghp_/],
  ['*.github.com', /^ghp_/],
  ['api.openai.com', /^sk-proj-[A-Za-z0-9]{48}$/],
  ['api.anthropic.com', /^sk-ant-api03-[A-Za-z0-9]{93}AA$/],
  ['files.slack.com', /^xoxb-\d{12}-\d{12}-[A-Za-z0-9]{24}$/],
  ['abc.supabase.co', /^[\w-]+\.[\w-]+\.[\w-]{43}$/],
  ['notgithub.com', /^[A-Za-z0-9]{40}$/],
  ['api.example.test', /^[A-Za-z0-9]{40}$/],
] as const;

describe('a placeholder', () => {
  test.each(HOSTS)('for %s has the format of its tokens', (host, form) => {
    expect(makeSentinel(host, 'bearer', randomBytes)).toMatch(form);
  });

  test('for sigv4-resign replaces the access key id', () => {
    expect(makeSentinel('s3.amazonaws.com', 'sigv4-resign', randomBytes)).toMatch(/^AKIA[A-Z2-7]{16}$/);
  });

  test('is different each time', () => {
    const made = Array.from({ length: 100 }, () => makeSentinel('api.example.test', 'bearer', randomBytes));
    expect(new Set(made).size).toBe(100);
  });

  test('is accepted by a binding', () => {
    const refused = HOSTS.filter(([host]) => {
      const sentinel = { value: makeSentinel(host, 'bearer', randomBytes) };
      const binding = {
        host,
        credential_ref: 'vault://a',
        scheme: 'bearer',
        emit_mechanism: 'sentinel-swap',
        sentinel,
      };
      return !hostBindingInput.safeParse(binding).success;
    });
    expect(refused).toEqual([]);
  });

  test('draws characters uniformly: bytes beyond the last whole multiple are rejected', () => {
    const draws = [new Uint8Array(40).fill(255), new Uint8Array(40).fill(0)];
    expect(makeSentinel('api.example.test', 'bearer', () => draws.shift() ?? new Uint8Array(40))).toBe('A'.repeat(40));
  });
});
