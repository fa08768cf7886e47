import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { mcpServerInput } from '../../shared/wire/mcp/mcp_servers.ts';
import type {
  InstallPreview,
  MarketplaceDetail,
  MarketplaceItem,
  UpgradeReply,
} from '../../shared/wire/marketplace.ts';
import { runCli, TestHome, type Answer, type RunOptions, type SeenCall } from '../testing/run_cli.ts';

let home: TestHome;
beforeEach(() => {
  home = new TestHome();
});
afterEach(() => home.remove());

const ID = 'mcp_01m7yjbz4dz98vffmftfxp52e5';
const NAME = 'io.example.acme/weather';
const VALUE = 'planted-secret-0123456789';
const time = '2026-01-01T11:59:00.000Z';
const hidden = 'The \u202eweather\u200b\u001b[31m of today';
const item: MarketplaceItem = {
  name: NAME,
  title: null,
  description: hidden,
  version: '1.2.3',
  status: 'active',
  published_at: null,
  updated_at: null,
  repository_url: null,
  website_url: null,
  has_icon: false,
  rule_problem: null,
  packages: [
    {
      registry_type: 'npm',
      registry_base_url: null,
      identifier: '@acme/weather',
      version: '1.2.3',
      transport: 'stdio',
      runtime_hint: 'npx',
      runtime_arguments: [],
      package_arguments: [],
      environment_variables: [],
    },
  ],
  remotes: [],
  problems: [],
  risks: [{ code: 'runs_code', text: 'runs code as you' }],
  installed: false,
};
const input = {
  description: '',
  format: null,
  default: null,
  placeholder: null,
  choices: [],
  repeated: false,
  credential: null,
};
const preview: InstallPreview = {
  choice: { kind: 'package', index: 0 },
  mode: 'local',
  version: '1.2.3',
  command: ['npx', '-y', '@acme/weather@1.2.3', '{dir}'],
  env: { API_KEY: '{API_KEY}' },
  url: null,
  transport: null,
  headers: {},
  inputs: [
    { ...input, name: 'API_KEY', required: true, secret: true, goes_to: ['variable API_KEY'], credential: 'API_KEY' },
    { ...input, name: 'dir', required: true, secret: false, goes_to: ['argument dir'], description: 'Where' },
  ],
  warnings: [{ code: 'unpinned_version', message: 'it runs whatever is \u202enewest' }],
};
const detail: MarketplaceDetail = {
  ...item,
  installed_servers: [],
  versions: [{ version: '1.2.3', status: 'active', published_at: null, is_latest: true }],
  options: [
    { kind: 'package', index: 0, ecosystem: 'npm', label: '@acme/weather 1.2.3', installable: true, problem: null },
  ],
  preview,
  fetched_at: time,
  stale: false,
};
const record = {
  ...mcpServerInput.parse({
    name: 'weather',
    command: ['npx', '-y', '@acme/weather@1.2.3', '/tmp'],
    env: { API_KEY: `vault://mcp-servers/${ID}/API_KEY` },
  }),
  id: ID,
  registry_id: NAME,
  version: '1.2.3',
  revision: 1,
  status: 'stopped',
  health: null,
  credentials: [{ name: 'API_KEY', required: true, set: false, updated_at: null }],
  authorization: null,
  warnings: [],
  created_at: time,
  updated_at: time,
};
const required_credentials = [{ name: 'API_KEY', description: 'Key', required: true, secret: true }];
const upgrade: UpgradeReply = {
  from_version: '1.2.3',
  to_version: '2.0.0',
  entry_version: '2.0.0',
  available: true,
  customised: false,
  diff: {
    command: { before: record.command, after: ['npx', '-y', '@acme/weather@2.0.0', '/tmp'] },
    url: null,
    env: { MORE: { before: null, after: '1' } },
    headers: {},
  },
  preview,
  problems: [],
  fetched_at: time,
  stale: false,
};

/** A control plane with this entry; the input `dir` is required. */
function control(change: Partial<MarketplaceDetail> = {}): Answer {
  return ({ method, url, body }) => {
    const path = decodeURIComponent(url.pathname);
    const given = JSON.stringify(body ?? {}).includes('"dir"');
    if (path.endsWith('/preview')) {
      const outcome = {
        command: record.command,
        env: { API_KEY: 'vault://mcp-servers/{id}/API_KEY' },
        url: null,
        headers: {},
      };
      const problems = given ? [] : [{ input: 'dir', code: 'missing', message: 'is required: Where' }];
      const reply = { preview, outcome: given ? outcome : null, required_credentials, problems };
      return { status: 200, body: { ...reply, fetched_at: time, stale: false } };
    }
    if (path.endsWith('/install')) return { status: 201, body: { server: record, required_credentials } };
    if (path.endsWith('/credentials')) return { status: 200, body: { env_var_name: 'API_KEY', stored: true } };
    if (path.endsWith('/upgrade') && method === 'GET') return { status: 200, body: upgrade };
    if (path.endsWith('/upgrade')) return { status: 200, body: { server: record, required_credentials: [] } };
    if (path === `/v1/marketplace/servers/${NAME}`) return { status: 200, body: { ...detail, ...change } };
    if (path === '/v1/mcp-servers') return { status: 200, body: { items: [record], next_cursor: null } };
    if (path !== '/v1/marketplace/servers')
      return { status: 404, body: { error: { code: 'not_found', message: 'no' } } };
    const isSecond = url.searchParams.has('cursor');
    const page = {
      items: [item, { ...item, name: 'io.b/x' }],
      next_cursor: isSecond ? null : 'next',
      fetched_at: time,
    };
    return { status: 200, body: { ...page, stale: true, partial: true } };
  };
}

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runCli(home, ['mcp', ...argv], { answer: control(), ...options });
const writes = (calls: readonly SeenCall[]) =>
  calls.filter(({ method, url }) => method !== 'GET' && !url.pathname.endsWith('/preview'));
/** Hidden characters, direction characters and terminal escapes. */
const UNSEEN = /[\u202a-\u202e\u200b]|\p{Cc}\[31m/u;

describe('svc mcp view --readme', () => {
  const readme = { text: '# Weather\n\na\u001b[31mb\u202e', cut: true, of: 'the npm package a', host: 'r.test' };
  const answer: Answer = ({ url }) => {
    const path = decodeURIComponent(url.pathname);
    if (path === `/v1/marketplace/readmes/${NAME}`) return { status: 200, body: readme };
    return { status: 404, body: { error: { code: 'not_found', message: 'no README of this entry can be had' } } };
  };

  test('shows the text and whose it is, and nothing in it reaches the terminal', async () => {
    const done = await run(['view', NAME, '--readme'], { answer });
    expect([done.code, done.stdout]).toEqual([0, expect.stringContaining('# Weather\n\na')]);
    expect(done.stdout).not.toMatch(UNSEEN);
    expect(done.stderr).toContain('README of the npm package a, sent by r.test');
    expect(done.stderr).toContain('The rest is left out');
    const json = await run(['view', NAME, '--readme', '--json'], { answer });
    expect(JSON.parse(json.stdout)).toEqual(readme);
  });

  test('says that there is none', async () => {
    const done = await run(['view', 'io.b/other', '--readme'], { answer });
    expect([done.code, done.stderr]).toEqual([1, expect.stringContaining('no README of this entry can be had')]);
  });
});

describe('svc mcp search and view', () => {
  test('page through the results and say how complete they are', async () => {
    const { code, stdout, stderr, calls } = await run([
      'search',
      'the',
      'weather',
      '--transport',
      'stdio',
      '--limit',
      '3',
    ]);
    expect([code, stdout.trim().split('\n').length]).toEqual([0, 4]);
    expect(calls[0]?.url.searchParams.get('q')).toBe('the weather');
    expect(calls[1]?.url.searchParams.get('cursor')).toBe('next');
    expect(stderr).toContain('does not answer');
    expect(stderr).toContain('Only names were searched');
  });

  test('filter by kind, transport, secret and publisher', async () => {
    const filters = ['--registry-type', 'oci', '--transport', 'stdio', '--publisher', 'com.acme', '--needs-secret'];
    const { calls } = await run(['search', 'x', '--limit', '1', ...filters, 'no']);
    const sent = Object.fromEntries(calls[0]?.url.searchParams ?? []);
    const asked = { registry_type: 'oci', transport: 'stdio', publisher: 'com.acme', needs_secret: 'false' };
    expect(sent).toEqual({ q: 'x', limit: '1', ...asked });
    const { calls: others } = await run(['search', '--limit', '1', '--needs-secret', 'yes']);
    expect(others[0]?.url.searchParams.get('needs_secret')).toBe('true');
    expect((await run(['search', '--needs-secret', 'maybe'])).code).toBe(2);
  });

  test('show the line of risk, and work with a control plane that sends none', async () => {
    expect((await run(['search', 'x'])).stdout).toContain('runs code as you');
    expect((await run(['view', NAME])).stdout).toContain('risk: runs code as you\n');
    const { risks: _risks, ...older } = detail;
    const answer: Answer = () => ({ status: 200, body: older });
    expect((await run(['view', NAME], { answer })).stdout).not.toContain('risk');
  });

  test.each([[['search', 'x']], [['view', NAME]]])(
    "%j escapes hidden characters in a publisher's text",
    async (argv) => {
      const { stdout } = await run(argv);
      expect(stdout).not.toMatch(UNSEEN);
      expect(stdout).toContain('<U+202E>');
    },
  );

  test('view shows what an install would start and ask for, and why something cannot be installed', async () => {
    const problem = { reason: 'runtime_not_allowed', message: 'It asks for bash.' };
    const options = [...detail.options, { ...detail.options[0]!, index: 1, installable: false, problem }];
    const { stdout } = await run(['view', NAME], { answer: control({ options }) });
    expect(stdout).toContain('npx -y @acme/weather@1.2.3 {dir}');
    expect(stdout).toContain('API_KEY (required, secret, variable API_KEY)');
    expect(stdout).toContain('It asks for bash.');
  });

  test("view shows the publisher's command with hidden characters escaped", async () => {
    const { stdout } = await run(['view', NAME]);
    expect(stdout).toContain('its publisher starts @acme/weather with: npx @acme/weather\n');
    const packages = [{ ...item.packages[0]!, runtime_hint: 'n\u202epx\u001b[31m', identifier: 'a b' }];
    const hostile = (await run(['view', NAME], { answer: control({ packages }) })).stdout;
    expect(hostile).not.toMatch(UNSEEN);
    expect(hostile).toMatch(/its publisher starts a b with: "n<U[+]202E>px.*" "a b"\n/);
    const bare = control({ packages: [{ ...item.packages[0]!, runtime_hint: null }] });
    expect((await run(['view', NAME], { answer: bare })).stdout).not.toContain('its publisher starts');
  });

  test('view says that an empty entry cannot be installed', async () => {
    const { stdout } = await run(['view', NAME], { answer: control({ options: [], preview: null }) });
    expect(stdout).toContain('cannot be installed: its entry has neither a package nor a remote address');
  });

  test.each([['view'], ['install', '--yes']])(
    '%s suggests a search if the registry has no such entry',
    async (...argv) => {
      const none = await run([...argv, 'io.example.acme/wether']);
      expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('svc mcp search')]);
      expect(none.stderr).toContain('the registry has no entry io.example.acme/wether');
      const release = await run([...argv, 'io.example.acme/wether', '--release', '9.9.9']);
      expect(release.stderr).toContain('with the version 9.9.9');
      expect(release.stderr).toContain('svc mcp view io.example.acme/wether');
    },
  );

  test('show of a registry entry points to view', async () => {
    expect((await run(['show', NAME])).stderr).toContain(`svc mcp view ${NAME}`);
  });

  test('--release is a version of the entry', async () => {
    const { calls } = await run(['view', NAME, '--release', '1.0.0']);
    expect(calls[0]?.url.searchParams.get('version')).toBe('1.0.0');
  });

  test('--limit is a number', async () => {
    expect((await run(['search', 'x', '--limit', '0'])).code).toBe(2);
  });
});

describe('svc mcp install', () => {
  test('shows what will run, then installs exactly that', async () => {
    const { code, stdout, stderr, calls } = await run(['install', NAME, '--yes', '--input', 'dir=/tmp']);
    expect([code, stdout]).toEqual([0, `${ID}\n`]);
    expect(stderr).toContain('npx -y @acme/weather@1.2.3 /tmp');
    expect(stderr).not.toMatch(UNSEEN);
    expect(stderr).toContain('svc mcp credential set weather API_KEY');
    expect(writes(calls)).toMatchObject([{ body: { version: '1.2.3', inputs: { dir: '/tmp' }, owner: 'personal' } }]);
  });

  test.each([
    ['a path that the person typed', '/tmp', 'a container does not have /tmp'],
    ['the machine, and not a path that only the entry names', 'elsewhere', 'nonexistent.sock'],
  ])('says before the question that it runs code as you, because of %s', async (_what, dir, why) => {
    const env = { DOCKER_HOST: 'unix:///nonexistent.sock' };
    const { stderr } = await run(['install', NAME, '--yes', '--input', `dir=${dir}`], { env });
    expect(stderr).toMatch(new RegExp(`not in a container: .*${why}`));
    expect(stderr).toContain('it runs code as you, with your files and your network\n');
  });

  test('says before the question what its container reaches', async () => {
    const typed = ['--isolation', 'container', '--allow', 'api.acme.test', '--input', 'dir=/tmp'];
    const { stderr } = await run(['install', NAME, '--yes', ...typed]);
    const said =
      'it runs in a container, or in a sandbox where there is no engine; it reaches only api.acme.test, with the credentials that you have there\n';
    expect(stderr).toContain(said);
    expect(stderr.indexOf(said)).toBeLessThan(stderr.indexOf('takes:'));
  });

  test('installs nothing without a terminal or --yes', async () => {
    const { code, stderr, calls } = await run(['install', NAME]);
    expect([code, writes(calls)]).toEqual([2, []]);
    expect(stderr).toContain('--yes');
  });

  test('names missing values', async () => {
    const { code, stderr, calls } = await run(['install', NAME, '--yes']);
    expect([code, writes(calls)]).toEqual([1, []]);
    expect(stderr).toContain('--input dir=VALUE');
  });

  test('refuses a secret on the command line', async () => {
    const { code, stderr, calls } = await run(['install', NAME, '--yes', '--input', `API_KEY=${VALUE}`]);
    expect([code, writes(calls)]).toEqual([2, []]);
    expect(stderr).not.toContain(VALUE);
  });

  test('stores a piped credential and never prints it', async () => {
    const argv = ['install', NAME, '--yes', '--input', 'dir=/tmp', '--credential', 'API_KEY', '--stdin'];
    const { code, stdout, stderr, calls } = await run(argv, { stdin: `${VALUE}\n` });
    expect(code).toBe(0);
    expect(writes(calls)[1]).toMatchObject({ body: { env_var_name: 'API_KEY', secret_value: VALUE } });
    expect(stdout + stderr).not.toContain(VALUE);
    expect(stderr).not.toContain('credential set');
  });

  test('changes nothing if the server is already installed', async () => {
    const installed_servers = [{ id: ID, name: 'weather', owner: 'personal' as const, version: '1.2.3' }];
    const { code, stderr } = await run(['install', NAME, '--yes'], { answer: control({ installed_servers }) });
    expect(code).toBe(0);
    expect(stderr).toContain('nothing was changed');
  });

  test.each([[['--package', '0']], [['--credential', 'API_KEY']], [['--stdin']], [['--input', 'dir']]])(
    'refuses %j',
    async (argv) => {
      const { code, calls } = await run(['install', NAME, '--yes', ...argv]);
      expect([code, writes(calls)]).toEqual([2, []]);
    },
  );
});

describe('svc mcp upgrade', () => {
  test('--check shows the changes and applies none', async () => {
    const { code, stdout, calls } = await run(['upgrade', 'weather', '--check']);
    expect([code, writes(calls)]).toEqual([0, []]);
    expect(stdout).toContain('- npx -y @acme/weather@1.2.3 /tmp');
    expect(stdout).toContain('+ npx -y @acme/weather@2.0.0 /tmp');
    expect(stdout).toContain('+ MORE: 1');
    expect(stdout).not.toMatch(UNSEEN);
  });

  test('installs the version that was shown and says how to undo it', async () => {
    const { code, stderr, calls } = await run(['upgrade', 'weather', '--yes']);
    expect(code).toBe(0);
    expect(writes(calls)).toMatchObject([{ body: { version: '2.0.0' } }]);
    expect(stderr).toContain('svc mcp rollback weather --to 1');
  });

  test('changes nothing without a terminal or --yes', async () => {
    const { code, calls } = await run(['upgrade', 'weather']);
    expect([code, writes(calls)]).toEqual([2, []]);
  });
});
