import { describe, expect, test } from 'vitest';
import { NO_MCP_RULES, type McpRules } from '../model/mcp_rules.ts';
import { parseSourcePattern } from '../net/mcp_source.ts';
import { areNoRules, findRuleProblem, tightenTools } from './server_rules.ts';
import { fetchedPackages } from './dangers/package_runners.ts';
import { sourcesOf } from './server_source.ts';
import { toolDecision } from './tool_policy.ts';

const SERVER = {
  name: 'files',
  mode: 'local',
  command: ['npx', '-y', '@acme/files@1.2.3'],
  env: {},
  url: null,
  isolation: 'process',
} as const;
const local = (...command: string[]) => ({ ...SERVER, command });
const remote = (url: string) => ({ ...SERVER, mode: 'remote' as const, command: [], url });

function runs(rules: Partial<McpRules>, server: Parameters<typeof sourcesOf>[0], registryName: string | null = null) {
  return findRuleProblem({ ...NO_MCP_RULES, ...rules }, { ...SERVER, ...server }, registryName) === null;
}

test.each([
  ['npx', ['npx', '-y', '@acme/files@1.2.3', '/srv'], ['npm:@acme/files']],
  ['a program of a package', ['npx', '-p', '@acme/files@1.0.0', 'files'], ['npm:@acme/files']],
  ['npm exec', ['npm', 'exec', '--', 'files@1.0.0'], ['npm:files']],
  ['bun x', ['bun', 'x', 'files@1.0.0'], ['npm:files']],
  ['uvx', ['uvx', 'Acme_Files@1.0.0'], ['pypi:acme-files']],
  ['uvx --from', ['uvx', '--from', 'acme.files==1.0.0', 'acme-files'], ['pypi:acme-files']],
  [
    'packages of one program',
    ['uvx', '--from', 'files==1.0', '--with', 'more==1.0', 'files'],
    ['pypi:files', 'pypi:more'],
  ],
  ['a fuzzy name beside --with', ['uvx', '--with', 'acme-evil==1.0', 'evil'], ['pypi:acme-evil', 'pypi:evil']],
  ['dnx', ['dnx', 'Acme.Files@1.0.0', '--yes'], ['nuget:acme.files']],
  ['docker', ['docker', 'run', '-i', '--rm', 'acme/files:1.0'], ['oci:docker.io/acme/files']],
  ['an official image', ['docker', 'run', '-i', 'files:1.0'], ['oci:docker.io/library/files']],
  ['an image of a registry', ['docker', 'run', '-i', 'ghcr.io/acme/files:1.0'], ['oci:ghcr.io/acme/files']],
  ['a program of this name at a path', ['/tmp/npx', '-y', '@acme/files@1.2.3'], null],
  ['another docker', ['/tmp/docker', 'run', '-i', 'acme/files:1.0'], null],
  ['a file', ['node', '/srv/files.js'], null],
  ['a program of another package', ['npx', '-p', '@acme/files@1.0.0', 'other'], null],
  [
    'an image that a package runner starts',
    ['npx', '-p', '@acme/files@1.0.0', 'docker', 'run', '-i', 'evil/x:1'],
    null,
  ],
  ['an option that is not known', ['npx', '--registry=https://evil.test', 'files'], null],
  ['an alias', ['npx', 'files@npm:evil@1.0.0'], null],
  ['unchecked code', ['npx', '-y', 'tsx@1.0.0', '/tmp/x.ts'], null],
])('the source of %s', (_, command, sources) => {
  expect(sourcesOf(local(...command))).toEqual(sources);
});

test('what a runner fetches does not tell about a program that is of none of its packages', () => {
  expect(fetchedPackages(['npx', '-p', '@acme/files@1.0.0', 'other'])).toBeNull();
  expect(fetchedPackages(['npx', '-p', '@acme/files@1.0.0', 'files'])).toEqual({ kind: 'npm', names: ['@acme/files'] });
});

test('a variable that chooses the registry, or may, hides the source', () => {
  expect(sourcesOf({ ...SERVER, env: { NPM_CONFIG_REGISTRY: 'https://evil.test' } })).toBeNull();
  expect(sourcesOf({ ...SERVER, env: { ERL_FLAGS: '-eval x' } })).toBeNull();
});

describe('servers that may run', () => {
  test.each([
    [['npm:@acme/*'], SERVER, true],
    [['npm:@acme/files'], SERVER, true],
    [['npm:*'], SERVER, true],
    [['npm:@acme/file'], SERVER, false],
    [['pypi:*', 'host:*'], SERVER, false],
    [[], SERVER, false],
    [['npm:@acme/*'], local('node', '/srv/files.js'), false],
    [['npm:@acme/*'], local('npx', '-p', '@acme/files@1.0.0', '-p', 'files-evil@1.0.0', 'files'), false],
    [['pypi:acme-files'], local('uvx', 'acme_files==1.0'), true],
    [['oci:docker.io/acme/*'], local('docker', 'run', '-i', 'acme/files:1'), true],
    [['oci:docker.io/acme/*'], local('docker', 'run', '-i', 'ghcr.io/docker.io/acme:1'), false],
    [['host:mcp.acme.test'], remote('https://mcp.acme.test/mcp'), true],
    [['host:*.acme.test'], remote('https://mcp.acme.test/mcp'), true],
    [['host:*.acme.test'], remote('https://mcp.acme.test.evil.test/mcp'), false],
    [['host:*.acme.test'], remote('https://evilacme.test/mcp'), false],
    [['host:*'], remote('https://any.test/mcp'), true],
    [['npm:*'], remote('https://any.test/mcp'), false],
  ])('%j: %j is %s', (sources, server, expected) => {
    expect(runs({ sources }, server)).toBe(expected);
  });

  test('a registry name counts only for what was derived from that entry', () => {
    const sources = ['registry:com.acme/*'];
    expect(runs({ sources }, SERVER, 'com.acme/files')).toBe(true);
    expect(runs({ sources }, SERVER, 'com.acmeevil/files')).toBe(false);
    expect(runs({ sources }, SERVER, null)).toBe(false);
    expect(runs({ sources }, { ...SERVER, env: { NPM_CONFIG_REGISTRY: 'https://evil.test' } }, 'com.acme/files')).toBe(
      false,
    );
  });
});

test('a local server has to be in a container, or to start one itself', () => {
  expect(runs({ isolation: 'container' }, SERVER)).toBe(false);
  expect(findRuleProblem({ ...NO_MCP_RULES, isolation: 'container' }, SERVER, null)).toContain(
    'svc mcp update files --isolation container',
  );
  expect(
    findRuleProblem({ ...NO_MCP_RULES, isolation: 'container' }, { ...SERVER, isolation: 'container' }, null),
  ).toBe(null);
  expect(runs({ isolation: 'container' }, local('docker', 'run', '-i', 'acme/files:1'))).toBe(true);
  expect(runs({ isolation: 'container' }, remote('https://mcp.acme.test/mcp'))).toBe(true);
});

test('only exact versions', () => {
  const pinned = { pinned_only: true };
  expect(runs(pinned, SERVER)).toBe(true);
  expect(runs(pinned, local('npx', '-y', '@acme/files'))).toBe(false);
  expect(runs(pinned, local('npx', '-y', '@acme/files@latest'))).toBe(false);
  expect(runs(pinned, local('docker', 'run', '-i', 'acme/files'))).toBe(false);
  expect(runs(pinned, remote('https://mcp.acme.test/mcp'))).toBe(true);
});

test.each([
  'files',
  'npm:',
  'git:x',
  'npm:*files',
  'npm:a b',
  'host:*.com',
  'host:a*.acme.test',
  `npm:${'a'.repeat(300)}`,
])('%s is no source', (text) => {
  expect(parseSourcePattern(text).ok).toBe(false);
});

test.each([
  ['pypi:Acme_*', 'pypi:acme-*'],
  ['oci:acme/*', 'oci:docker.io/acme/*'],
  ['host:MCP.Acme.TEST', 'host:mcp.acme.test'],
])('%s is compared as %s', (text, canonical) => {
  expect(parseSourcePattern(text)).toEqual({ ok: true, value: canonical });
});

test('no decision about a tool is looser than either policy', () => {
  const lists = [null, [], ['read_*'], ['read_file', 'write_file'], ['*']];
  const others = [[], ['write_*'], ['read_file']];
  const policies = lists.flatMap((allow) =>
    others.flatMap((deny) => others.map((approval) => ({ allow, deny, approval }))),
  );
  const order = ['allowed', 'approval', 'denied'];
  for (const own of policies) {
    for (const rule of policies) {
      const both = tightenTools(own, { ...NO_MCP_RULES, tools: rule });
      for (const name of ['read_file', 'read_all', 'write_file', 'drop']) {
        const strictest = Math.max(...[own, rule].map((one) => order.indexOf(toolDecision(one, { name }))));
        expect(toolDecision(both, { name })).toBe(order[strictest]);
      }
    }
  }
});

test('rules that say nothing are none', () => {
  expect(areNoRules(NO_MCP_RULES)).toBe(true);
  expect(areNoRules({ ...NO_MCP_RULES, tools: { allow: null, deny: ['x'], approval: [] } })).toBe(false);
  expect(areNoRules({ ...NO_MCP_RULES, sources: [] })).toBe(false);
});
