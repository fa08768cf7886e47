import { describe, expect, test } from 'vitest';
import { isContainerCommand } from '../../shared/mcp/server_isolation.ts';
import { markContainer, DEFAULT_RUNTIME_IMAGES, wrapInContainer } from './container_command.ts';

const marks = { gatewayMark: 'abc', runId: 'abc.1', endpoint: 'unix:///run/docker.sock' };

describe('wrapInContainer', () => {
  test('runs the program in a suitable image, unprivileged, with only variable names on the command line', () => {
    const placed = wrapInContainer(['npx', '-y', 'x@1.0.0'], ['TOKEN'], DEFAULT_RUNTIME_IMAGES, marks);
    if (!placed.ok) throw new Error(placed.error);
    const { program, args } = placed.value;
    expect([program, ...args.slice(0, 3)]).toEqual(['docker', '--host', 'unix:///run/docker.sock', 'run']);
    expect(args).toEqual(
      expect.arrayContaining(['--rm', '--interactive', '--init', '--cap-drop=ALL', '--read-only', '--pids-limit=256']),
    );
    expect(args).toEqual(expect.arrayContaining(['--security-opt=no-new-privileges', '--user=65532:65532']));
    expect(args).toEqual(expect.arrayContaining(['--label', 'svc.mcp.gateway=abc', 'svc.mcp.run=abc.1']));
    expect(args[args.indexOf('TOKEN') - 1]).toBe('--env');
    expect(args.slice(args.indexOf('--entrypoint=npx'))).toEqual(['--entrypoint=npx', 'node:24-slim', '-y', 'x@1.0.0']);
    expect(args.some((arg) => /^(-v|--volume|--mount|--privileged|--net)/.test(arg))).toBe(false);
  });

  test('runs it in podman, without the proxies of its user', () => {
    const podman = { ...marks, endpoint: 'podman:/var/lib/containers/storage' };
    const placed = wrapInContainer(['npx', 'x@1.0.0'], ['TOKEN'], DEFAULT_RUNTIME_IMAGES, podman);
    if (!placed.ok) throw new Error(placed.error);
    const { program, args } = placed.value;
    expect([program, ...args.slice(0, 3)]).toEqual(['podman', 'run', '--http-proxy=false', '--rm']);
    expect(args).toEqual(expect.arrayContaining(['--cap-drop=ALL', 'HOME=/home/mcp', 'TOKEN']));
    // Podman refuses an owner of a directory in memory.
    expect(args).toContain('--tmpfs=/home/mcp:rw,nosuid,nodev,exec,mode=1777,size=1g');
  });

  test('refuses a program without a known image', () => {
    const placed = wrapInContainer(['dnx', 'x'], [], DEFAULT_RUNTIME_IMAGES, marks);
    expect(placed).toMatchObject({ ok: false, error: expect.stringContaining('no image is known for "dnx"') });
  });

  test.each(['constructor', 'toString', '__proto__'])('knows no image for the program %s', (program) => {
    expect(wrapInContainer([program], [], DEFAULT_RUNTIME_IMAGES, marks).ok).toBe(false);
  });
});

test("a configuration's own docker run is bound to the engine and the image, labelled and limited, and otherwise unchanged", () => {
  const id = `sha256:${'a'.repeat(64)}`;
  const own = ['docker', 'run', '-i', '--rm', '-e', 'TOKEN', '--pull=always', 'acme/mcp:1.2', '--x', 'acme/mcp:1.2'];
  const placed = markContainer(own, id, marks);
  if (!placed.ok) throw new Error(placed.error);
  const { args } = placed.value;
  expect(args.slice(0, 3)).toEqual(['--host', 'unix:///run/docker.sock', 'run']);
  expect(args).toContain('svc.mcp.run=abc.1');
  expect(args).toContain('--security-opt=no-new-privileges');
  const rest = ['-i', '--rm', '-e', 'TOKEN', '--pull=always', '--pull=never', id, '--x', 'acme/mcp:1.2'];
  expect(args.slice(-rest.length)).toEqual(rest);
  expect(markContainer(['docker', 'run', '--privileged', 'acme/mcp:1.2'], id, marks).ok).toBe(false);
});

test('recognises a command that starts a container', () => {
  expect(
    ['docker', '/usr/bin/docker', 'npx', 'xdocker'].map((program) => isContainerCommand([program, 'run'])),
  ).toEqual([true, true, false, false]);
});
