import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { BASE_PROBE, mcpHelperNode } from './mcp_helper_node.ts';

const OWN = { platform: 'linux', architecture: 'x64', isGlibc: true };
const AMD64 = { architecture: 'amd64' };
const DEBIAN = 'libc=glibc\ncxx=yes\n';

describe('the Node of svc-mcp', () => {
  test.each([
    [`node=v20.1.0\n${DEBIAN}`, 'of_image'],
    ['node=v24.0.0\n', 'of_image'],
    [`node=v18.20.0\n${DEBIAN}`, 'of_svc'],
    [`node=\n${DEBIAN}`, 'of_svc'],
    [`node=v\n${DEBIAN}`, 'of_svc'],
    [DEBIAN, 'of_svc'],
    ['', 'none'],
    ['libc=glibc\n', 'none'],
    ['cxx=yes\n', 'none'],
  ])('of a base that is %j is %s', (probe, kind) => {
    expect(mcpHelperNode(probe, AMD64, OWN).kind).toBe(kind);
  });

  test.each([
    [{ ...OWN, platform: 'darwin' }, 'Linux with glibc'],
    [{ ...OWN, isGlibc: false }, 'Linux with glibc'],
    [{ ...OWN, architecture: 'arm64' }, 'another processor'],
  ])("is not svc's own if that was built for %j", (own, reason) => {
    expect(mcpHelperNode(DEBIAN, AMD64, own)).toMatchObject({ kind: 'none', reason: expect.stringContaining(reason) });
  });

  test('is reported as missing with an alternative', () => {
    const none = mcpHelperNode('', AMD64, OWN);
    expect(none).toMatchObject({ reason: expect.stringContaining('$SVC_URL/v1/mcp') });
  });

  test('is found by a valid sh script', () => {
    const said = execFileSync('/bin/sh', ['-c', BASE_PROBE], { encoding: 'utf8' });
    expect(said.split('\n').filter((line) => line !== '' && !/^(node|libc|cxx)=\S+$/.test(line))).toEqual([]);
  });
});
