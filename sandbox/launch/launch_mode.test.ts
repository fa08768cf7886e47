import { describe, expect, test } from 'vitest';
import { decideProxy, parseSandboxMode } from './launch_mode.ts';

describe('whether a launch uses the proxy', () => {
  test.each(['auto', 'on'] as const)('docker and podman with %s do', (wanted) => {
    expect(decideProxy('docker', wanted)).toEqual({ kind: 'proxied' });
    expect(decideProxy('podman', wanted)).toEqual({ kind: 'proxied' });
  });

  test.each(['docker', 'podman', 'none'] as const)('%s with off does not, by choice', (mode) => {
    expect(decideProxy(mode, 'off')).toEqual({ kind: 'unproxied', reason: 'user_opt_out' });
  });

  test('none with auto does not, because it is not supported', () => {
    expect(decideProxy('none', 'auto')).toEqual({ kind: 'unproxied', reason: 'unsupported_sandbox_mode' });
  });

  test('none with on fails its preflight', () => {
    expect(decideProxy('none', 'on')).toEqual({
      kind: 'preflight_failed',
      reasons: ['unsupported_sandbox_mode', 'preflight_failed'],
    });
  });

  test.each(['', 'Docker', 'docker ', 'lxc'])('the mode %j is refused', (text) => {
    expect(parseSandboxMode(text)).toEqual({ ok: false, error: expect.stringContaining('use docker, podman or none') });
  });
});
