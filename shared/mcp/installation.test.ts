import { describe, expect, test } from 'vitest';
import { installationOptions, planInstallation } from './installation.ts';
import { previewUrl, previewWords } from './install/preview.ts';
import { entryOf, installEntry, packageEntry, planOf, refusalOfEntry, remoteEntry } from './testing/entries.ts';

const oci = { registryType: 'oci', identifier: 'registry.example/acme/demo:1.2.3', version: undefined };
const pypi = { registryType: 'pypi', identifier: 'acme-demo' };
const nuget = { registryType: 'nuget', identifier: 'Acme.Demo' };
const namedArgument = (name: string, rest: object = {}) => ({ type: 'named', name, ...rest });
const positional = (value: string, rest: object = {}) => ({ type: 'positional', value, ...rest });
const packageOf = (registryType: string, rest: object = {}) => ({
  registryType,
  identifier: 'demo',
  version: '1.2.3',
  ...rest,
});
const codesOf = (entry: Parameters<typeof planOf>[0]) => planOf(entry).warnings.map(({ code }) => code);

describe('the command of a package', () => {
  test.each([
    ['npm', {}, 'npx -y @acme/demo@1.2.3'],
    [
      'npm with a version in its identifier',
      { identifier: 'demo@2.0.0-beta.1', version: '9.9.9' },
      'npx -y demo@2.0.0-beta.1',
    ],
    [
      'npm whose hint is npx',
      { runtimeHint: 'npx', runtimeArguments: [namedArgument('-y')] },
      'npx -y @acme/demo@1.2.3',
    ],
    ['npm of the public registry', { registryBaseUrl: 'https://npm.example' }, 'npx -y @acme/demo@1.2.3'],
    [
      'npm with itself among the runtime arguments',
      { runtimeArguments: [namedArgument('--yes'), positional('@acme/demo@latest')] },
      'npx -y @acme/demo@1.2.3',
    ],
    [
      'npm with fixed arguments',
      {
        packageArguments: [
          positional('mcp'),
          namedArgument('--mode', { value: 'stdio' }),
          namedArgument('--port=', { value: '1' }),
        ],
      },
      'npx -y @acme/demo@1.2.3 mcp --mode stdio --port=1',
    ],
    [
      'npm with options of no dashes',
      { packageArguments: [namedArgument('mode', { value: 'x' }), namedArgument('v', { value: 'y' })] },
      'npx -y @acme/demo@1.2.3 --mode x -v y',
    ],
    [
      'npm with a default',
      { packageArguments: [namedArgument('--unit', { default: 'c' })] },
      'npx -y @acme/demo@1.2.3 --unit c',
    ],
    [
      'npm with options that are on and off',
      {
        packageArguments: [
          namedArgument('--on', { value: 'true', format: 'boolean' }),
          namedArgument('--off', { value: 'false', format: 'boolean' }),
        ],
      },
      'npx -y @acme/demo@1.2.3 --on',
    ],
    [
      'npm with an option that is repeated as its value',
      { packageArguments: [namedArgument('--stdio', { value: '--stdio' })] },
      'npx -y @acme/demo@1.2.3 --stdio',
    ],
    [
      'npm with an optional argument that is not given',
      { packageArguments: [namedArgument('--unit'), { type: 'positional', valueHint: 'city' }] },
      'npx -y @acme/demo@1.2.3',
    ],
    [
      'npm with arguments of its own for the runner',
      { runtimeArguments: [namedArgument('--mcp', { value: 'x' }), positional('serve')] },
      'npx -y @acme/demo@1.2.3 --mcp x serve',
    ],
    ['pypi', pypi, 'uvx acme-demo@1.2.3'],
    ['pypi with a version of Python', { ...pypi, version: 'v1.2.3rc1' }, 'uvx acme-demo@1.2.3rc1'],
    ['nuget', nuget, 'dnx Acme.Demo@1.2.3 --yes'],
    ['nuget with arguments', { ...nuget, packageArguments: [positional('mcp')] }, 'dnx Acme.Demo@1.2.3 --yes -- mcp'],
    ['oci', oci, 'docker run -i --rm registry.example/acme/demo:1.2.3'],
    [
      'oci with its version apart',
      { ...oci, identifier: 'acme/demo', version: '1.2.3' },
      'docker run -i --rm acme/demo:1.2.3',
    ],
    [
      'oci with its registry apart',
      { ...oci, identifier: 'acme/demo:1.2.3', registryBaseUrl: 'https://registry.example' },
      'docker run -i --rm registry.example/acme/demo:1.2.3',
    ],
    [
      'oci by digest',
      { ...oci, identifier: `acme/demo@sha256:${'a'.repeat(64)}` },
      `docker run -i --rm acme/demo@sha256:${'a'.repeat(64)}`,
    ],
    [
      'oci with arguments',
      { ...oci, packageArguments: [positional('stdio')] },
      'docker run -i --rm registry.example/acme/demo:1.2.3 stdio',
    ],
  ])('%s', (_what, item, command) => {
    const { command: words, mode } = installEntry(packageEntry(item));
    expect([mode, words.join(' ')]).toEqual(['local', command]);
  });

  test('of an image is taken from the whole command that a publisher writes', () => {
    const runtimeArguments = [
      positional('run'),
      namedArgument('-i', { value: 'true', format: 'boolean', isRequired: true }),
      namedArgument('--rm'),
      namedArgument('-e'),
      positional('TOKEN', { valueHint: 'env_var_name' }),
      namedArgument('-v'),
      positional('/tmp/data:/data'),
      positional('acme/demo', { valueHint: 'image_name' }),
      positional('serve'),
    ];
    const environmentVariables = [
      { name: 'TOKEN', isSecret: true, isRequired: true },
      { name: 'LEVEL', default: 'info' },
    ];
    const entry = packageEntry({ ...oci, runtimeArguments, environmentVariables });
    const { command, env } = installEntry(entry);
    expect(command.join(' ')).toBe(
      'docker run -i --rm -v /tmp/data:/data -e TOKEN -e LEVEL registry.example/acme/demo:1.2.3 serve',
    );
    expect(env).toEqual({ TOKEN: 'vault://mcp-servers/mcp_00000000000000000000000001/TOKEN', LEVEL: 'info' });
    expect(codesOf(entry)).toEqual(['no_integrity', 'docker_mount']);
  });

  test("passes an image's values in the environment, not in the command", () => {
    const token = { token: { isRequired: true, isSecret: true } };
    const runtimeArguments = [
      namedArgument('-e', { value: 'TOKEN={token}', variables: token }),
      namedArgument('-e', { value: 'MODE=x=y' }),
    ];
    const { command, env } = installEntry(packageEntry({ ...oci, runtimeArguments }), { token: 'hush' });
    expect(command.slice(4)).toEqual(['-e', 'TOKEN', '-e', 'MODE', 'registry.example/acme/demo:1.2.3']);
    expect(env).toEqual({ TOKEN: 'vault://mcp-servers/mcp_00000000000000000000000001/token', MODE: 'x=y' });
  });

  test.each([
    ['the exact version of the entry is taken for "latest"', { version: 'latest' }, 'version_from_entry'],
    ['or for none', { version: undefined }, 'version_from_entry'],
    ['another runtime is not used', { runtimeHint: 'bun' }, 'runtime_hint_ignored'],
    ['words for the runner go to the program', { runtimeArguments: [positional('serve')] }, 'argument_moved'],
    ['a variable that is none is left out', { environmentVariables: [{ name: 'X-Key' }] }, 'variable_ignored'],
    ['a variable that loads code is left out', { environmentVariables: [{ name: 'NODE_PATH' }] }, 'variable_ignored'],
    [
      'a secret that is an argument',
      { packageArguments: [namedArgument('--token', { isSecret: true })] },
      'secret_in_arguments',
    ],
    ['hidden characters', { environmentVariables: [{ name: 'A', description: 'a\u200bb' }] }, 'hidden_characters'],
    ['hidden characters of a fixed value', { packageArguments: [positional('a\u202eb')] }, 'hidden_characters'],
    ['an image by its tag', oci, 'no_integrity'],
    ['a variable that may load code', { environmentVariables: [{ name: 'JAVA_OPTS' }] }, 'unchecked_code'],
    ['a package that runs what it is told', { identifier: 'tsx' }, 'unchecked_code'],
  ])('warns: %s', (_what, item, code) => {
    expect(codesOf(packageEntry(item))).toContain(code);
  });

  test('warns of a deprecated entry, and of nothing by default', () => {
    expect(codesOf(packageEntry({}, { status: 'deprecated' }))).toEqual(['deprecated']);
    expect(codesOf(packageEntry({}))).toEqual([]);
  });
});

const messageOf = (item: Readonly<Record<string, unknown>>) => {
  const planned = planInstallation(packageEntry(item));
  return planned.ok ? '' : planned.error.message;
};

describe('the refusal of a package that needs another way', () => {
  test('has the steps for a bundle, with its address and hash', () => {
    const identifier = 'https://downloads.example/x-1.0.mcpb';
    const message = messageOf({ registryType: 'mcpb', identifier, fileSha256: 'A'.repeat(64) });
    expect(message).toContain(`download ${identifier}, compare its SHA-256 (${'a'.repeat(64)})`);
    expect(message).toContain('svc mcp add NAME -- node DIRECTORY/server/index.js');
  });

  test.each([
    'https://downloads.example/x;reboot',
    'https://downloads.example/$(reboot)',
    'file:///etc/passwd',
    '-o x',
  ])('does not repeat the address %j, which a person may paste', (identifier) => {
    const message = messageOf({ registryType: 'mcpb', identifier, fileSha256: '$(reboot)' });
    expect(message).toContain('download it, compare its SHA-256, unpack it');
    expect(message).not.toMatch(/reboot|passwd|-o x/);
  });

  test('has the command that adds a server that listens', () => {
    const message = messageOf({ transport: { type: 'streamable-http', url: 'http://localhost:3000' } });
    expect(message).toContain('svc mcp add NAME --url http://127.0.0.1:PORT/mcp');
  });
});

describe('entries that are not installed', () => {
  test.each([
    ['unsupported_registry', { registryType: 'unknown' }],
    [
      'bundle_not_supported',
      { registryType: 'mcpb', identifier: 'https://example.com/x.mcpb', fileSha256: 'a'.repeat(64) },
    ],
    ['unsupported_transport', { transport: { type: 'streamable-http', url: 'http://localhost:3000' } }],
    ['unsupported_transport', { transport: { type: 'pigeon' } }],
    ['foreign_registry', { registryBaseUrl: 'https://npm.pkg.acme.example' }],
    ['foreign_registry', { registryBaseUrl: 'http://npm.example' }],
    ['foreign_registry', { ...pypi, registryBaseUrl: 'https://test.pypi.example' }],
    ['runtime_not_allowed', { runtimeHint: 'bash' }],
    ['runtime_not_allowed', { runtimeHint: 'npx; reboot' }],
    ['runtime_not_allowed', { ...pypi, runtimeHint: 'sh' }],
    ['bad_identifier', { identifier: '--registry=http://evil.example' }],
    ['bad_identifier', { identifier: '-c' }],
    ['bad_identifier', { identifier: 'a b' }],
    ['bad_identifier', { identifier: 'demo; reboot' }],
    ['bad_identifier', { identifier: '$(reboot)' }],
    ['bad_identifier', { identifier: 'acme/demo' }],
    ['bad_identifier', { identifier: 'git+https://evil.example/x' }],
    ['bad_identifier', { identifier: '../demo' }],
    ['bad_identifier', { ...pypi, identifier: '--from' }],
    ['bad_identifier', { ...pypi, identifier: 'x @ https://evil.example/x.whl' }],
    ['bad_identifier', { ...nuget, identifier: '-x' }],
    ['bad_identifier', { ...oci, identifier: '--privileged' }],
    ['bad_identifier', { ...oci, identifier: 'acme/demo:1.0 --privileged' }],
    ['bad_identifier', { ...oci, identifier: 'https://registry.example/acme/demo:1.0' }],
    ['unpinned_version', { version: '^1.2.3' }],
    ['unpinned_version', { version: '--call' }],
    ['unpinned_version', { version: '1.2' }],
    ['unpinned_version', { version: 'next' }],
    ['unpinned_version', { identifier: 'demo@^1' }],
    ['unpinned_version', { ...pypi, version: '>=1.0' }],
    ['unpinned_version', { ...pypi, version: '1.0 --index-url x' }],
    ['unpinned_version', { ...nuget, version: '*' }],
    ['unpinned_version', { ...oci, identifier: 'acme/demo:latest' }],
    ['unpinned_version', { ...oci, identifier: 'acme/demo' }],
    ['unpinned_version', { ...oci, identifier: 'acme/demo', version: 'latest' }],
    ['unpinned_version', { ...oci, identifier: 'acme/demo:main' }],
    ['argument_not_allowed', { runtimeArguments: [namedArgument('--registry', { value: 'http://evil.example' })] }],
    ['argument_not_allowed', { runtimeArguments: [positional('--call=x')] }],
    ['argument_not_allowed', { runtimeArguments: [namedArgument('-c', { value: 'reboot' })] }],
    ['argument_not_allowed', { runtimeArguments: [namedArgument('--package', { value: 'evil' })] }],
    [
      'argument_not_allowed',
      { ...pypi, runtimeArguments: [namedArgument('--from', { value: 'git+https://evil.example/x' })] },
    ],
    ['argument_not_allowed', { ...pypi, runtimeArguments: [positional('-m'), positional('x')] }],
    [
      'argument_not_allowed',
      { ...nuget, runtimeArguments: [namedArgument('--source', { value: 'http://evil.example' })] },
    ],
    ['argument_not_allowed', { packageArguments: [namedArgument('--a b', { value: 'x' })] }],
    ['argument_not_allowed', { ...oci, runtimeArguments: [namedArgument('--privileged', { value: 'true' })] }],
    ['argument_not_allowed', { ...oci, runtimeArguments: [positional('--privileged')] }],
    ['argument_not_allowed', { ...oci, runtimeArguments: [namedArgument('-v', { value: '/:/host' })] }],
    [
      'argument_not_allowed',
      { ...oci, runtimeArguments: [namedArgument('-v'), positional('/var/run/docker.sock:/x')] },
    ],
    ['argument_not_allowed', { ...oci, runtimeArguments: [positional('--volume=/:/host')] }],
    ['argument_not_allowed', { ...oci, runtimeArguments: [namedArgument('--network', { value: 'host' })] }],
    ['argument_not_allowed', { ...oci, runtimeArguments: [namedArgument('--cap-add', { value: 'ALL' })] }],
    ['argument_not_allowed', { ...oci, runtimeArguments: [namedArgument('--entrypoint', { value: 'sh' })] }],
    ['argument_not_allowed', { ...oci, runtimeArguments: [positional('run'), positional('evil/image:1')] }],
    ['variable_not_allowed', { environmentVariables: [{ name: 'X-Key', isRequired: true }] }],
    ['variable_not_allowed', { environmentVariables: [{ name: 'LD_PRELOAD', isRequired: true }] }],
    [
      'variable_not_allowed',
      { ...oci, runtimeArguments: [namedArgument('-e', { value: 'PATH=/tmp', isRequired: true })] },
    ],
    ['command_refused', { packageArguments: [positional('a\0b')] }],
  ])('%s: %o', (reason, item) => {
    expect(refusalOfEntry(packageEntry(item)).reason).toBe(reason);
  });

  test.each([
    ['insecure_url', { url: 'http://mcp.example.com/mcp' }],
    ['local_url', { url: 'http://localhost:3000/mcp' }],
    ['local_url', { url: 'https://127.0.0.1/mcp' }],
    ['local_url', { url: 'https://[::1]/mcp' }],
    ['local_url', { url: 'https://169.254.169.254/x' }],
    ['local_url', { url: 'https://2130706433/x' }],
    ['local_url', { url: 'https://router.lan/x' }],
    ['bad_url', { url: 'https://user:pw@mcp.example.com/' }],
    ['bad_url', { url: 'https://mcp.example.com\\@evil.example/' }],
    ['bad_url', { url: 'https://mcp.example.com/#x' }],
    ['bad_url', { url: 'mcp.example.com' }],
    ['bad_url', { url: 'https://mcp.example.com/a b' }],
    ['insecure_url', { url: 'ftp://mcp.example.com/' }],
    ['secret_in_url', { url: 'https://mcp.example.com/{api_key}/mcp' }],
    ['secret_in_url', { url: 'https://{token}.example.com/mcp', variables: { token: { isSecret: true } } }],
    ['secret_in_url', { url: 'https://mcp.example.com/mcp?k={api_key}x' }],
    ['header_not_allowed', { headers: [{ name: 'Host', value: 'x', isRequired: true }] }],
    ['header_not_allowed', { headers: [{ name: 'X Y', isRequired: true }] }],
    ['header_not_allowed', { headers: [{ name: 'A\r\nB', isRequired: true }] }],
  ])('%s: %o', (reason, remote) => {
    expect(refusalOfEntry(remoteEntry(remote)).reason).toBe(reason);
  });

  test('a deleted entry, and one without packages and remotes', () => {
    expect(refusalOfEntry(packageEntry({}, { status: 'deleted' })).reason).toBe('deleted');
    expect(refusalOfEntry(entryOf({ name: 'a/b' })).reason).toBe('nothing_to_install');
  });

  test('an argument of several words gets a fix in its message', () => {
    const { message } = refusalOfEntry(
      packageEntry({ packageArguments: [namedArgument('--directory /srv', { value: 'x' })] }),
    );
    expect(message).toContain('"--directory /srv", several words in one');
    expect(message).toContain('Add the server by hand');
  });

  test('every reason is a sentence without hidden characters', () => {
    const { message } = refusalOfEntry(packageEntry({ identifier: 'x\u001b[2J\u202e' }));
    expect(message).toMatch(/^[A-Z][ -~]*\.$/);
  });
});

describe('the selected package', () => {
  const remotes = [
    { type: 'sse', url: 'https://mcp.example.com/sse' },
    { type: 'streamable-http', url: 'https://mcp.example.com/mcp' },
  ];
  const describeChoice = (packages: readonly object[], withRemotes = true) => {
    const { ecosystem, choice } = planOf(entryOf({ name: 'a/b', packages, remotes: withRemotes ? remotes : [] }));
    return [ecosystem, choice.kind, choice.index];
  };

  test('is npm, at any position', () => {
    expect(describeChoice([packageOf('oci'), packageOf('pypi'), packageOf('npm')])).toEqual(['npm', 'package', 2]);
  });

  test('else one that can be started, before a remote', () => {
    expect(
      describeChoice([packageOf('mcpb'), packageOf('npm', { transport: { type: 'sse' } }), packageOf('oci')]),
    ).toEqual(['oci', 'package', 2]);
  });

  test('else a remote, streamable HTTP before SSE', () => {
    expect(describeChoice([packageOf('mcpb')])).toEqual(['remote', 'remote', 1]);
  });

  test('of two of a kind, is the first that can be started', () => {
    expect(describeChoice([packageOf('npm', { version: 'next' }), packageOf('npm')])).toEqual(['npm', 'package', 1]);
  });

  test('is the requested one', () => {
    const entry = entryOf({ name: 'a/b', packages: [packageOf('npm'), packageOf('pypi')], remotes });
    expect(planInstallation(entry, { kind: 'package', index: 1 })).toMatchObject({
      ok: true,
      value: { ecosystem: 'pypi' },
    });
    expect(planInstallation(entry, { kind: 'remote', index: 0 })).toMatchObject({
      ok: true,
      value: { transport: 'sse' },
    });
    expect(planInstallation(entry, { kind: 'remote', index: 9 })).toMatchObject({
      ok: false,
      error: { reason: 'no_such_choice' },
    });
    expect(installationOptions(entry).map(({ choice }) => `${choice.kind} ${choice.index}`)).toEqual([
      'package 0',
      'package 1',
      'remote 1',
      'remote 0',
    ]);
  });

  test('if none can be installed, the reason is that of the best one', () => {
    const entry = entryOf({ name: 'a/b', packages: [packageOf('mcpb'), packageOf('npm', { version: 'next' })] });
    expect(refusalOfEntry(entry).reason).toBe('unpinned_version');
  });
});

describe('the preview', () => {
  test('shows where values belong', () => {
    const packageArguments = [
      namedArgument('--unit', { isRequired: true }),
      { type: 'positional', valueHint: 'city', isRequired: true },
    ];
    expect(previewWords(planOf(packageEntry({ packageArguments })).command)).toEqual([
      'npx',
      '-y',
      '@acme/demo@1.2.3',
      '--unit',
      '{unit}',
      '{city}',
    ]);
    const remote = planOf(remoteEntry({ url: 'https://{tenant}.example.com/{path}?k={api_key}' }));
    expect(previewUrl(remote)).toBe('https://{tenant}.example.com/{path}?k={api_key}');
  });
});
