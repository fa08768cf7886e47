import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pythonWith, STANDARD_MODULES, succeeds } from '../../tools/system_parts.mjs';
import { sendJson, startService } from '../matrix/service.ts';
import { npmRegistry } from '../matrix/services.ts';
import { startGitUpstream } from '../support/git_upstream.ts';
import { foundIn, plantSecret, searchFiles, searchProcesses } from '../support/planted_secret.ts';
import { type Finished, run, shellEnvironment, SVC } from '../support/program.ts';
import { createTestCa } from '../support/test_ca.ts';
import { listen } from '../support/tls_upstream.ts';

// The first call of `svc claude`, on a state directory that does not exist, at a terminal.

/** Runs a command on its own terminal, pastes the first argument at the prompt, and prints everything that was shown. */
const AT_A_TERMINAL = `
import os, pty, sys
secret, command = sys.argv[1], sys.argv[2:]
secret = open(secret).read()
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown, pasted = b'', False
while True:
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        break
    if not chunk:
        break
    shown += chunk
    if not pasted and b'(not shown)' in shown:
        pasted = True
        os.write(terminal, secret.encode() + b'\\r')
sys.stdout.buffer.write(shown)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;
const KEY = `sk-ant-api03-${randomBytes(36).toString('base64url')}`;
/** In the shell of the person, as many have it. */
const OF_SHELL = `left-${randomBytes(24).toString('base64url')}`;
const NPM_HOST = 'packages.example.test';
const GITHUB_TOKEN = plantSecret();
const NPM_TOKEN = plantSecret();
/** Uses each service as an agent does, with what its session gives it, in the folder that is its last argument. */
const WORKING_AGENT = `#!/bin/sh
set -e
cd "$2"
curl -sS -o model -w 'model %{http_code}\\n' -H "x-api-key: $ANTHROPIC_API_KEY" https://api.anthropic.com/v1/models
printf 'login %s\\n' "$(gh api user --jq .login)"
git clone -q https://github.com/project.git clone
cd clone
printf 'content\\n' > file
git add file
git -c user.name=A -c user.email=a@example.test commit -q -m 'A file'
git push -q origin HEAD:main && echo pushed
cd .. && mkdir made && cd made
printf '{"name":"made-here","version":"1.2.3"}' > package.json
printf 'registry=https://${NPM_HOST}/\\n//${NPM_HOST}/:_authToken=\${NPM_TOKEN}\\n' > .npmrc
npm publish --no-audit --no-fund
`;
const AGENT = '#!/bin/sh\nprintf "agent %s %s\\n" "$*" "$ANTHROPIC_API_KEY"\nexit 7\n';

let folder: string;
let env: Record<string, string>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-e2e-nothing-'));
  for (const name of ['bin', 'user', 'work']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'bin', 'claude'), AGENT);
  chmodSync(join(folder, 'bin', 'claude'), 0o755);
  // Outside of the searched folders: the person's clipboard.
  writeFileSync(join(folder, 'clipboard'), KEY);
  const PATH = `${join(folder, 'bin')}:${shellEnvironment()['PATH'] ?? ''}`;
  env = {
    ...shellEnvironment(),
    PATH,
    HOME: join(folder, 'user'),
    SVC_HOME: join(folder, 'state'),
    DEPLOY_PASS: OF_SHELL,
  };
});
afterEach(async () => {
  await run(SVC, ['down', '--yes'], { env });
  rmSync(folder, { recursive: true, force: true });
});

/** Stand-ins of the services, which refuse anything but the real credential; and how svc reaches them. */
async function startServices() {
  const ca = await createTestCa();
  const certify = (host: string) => ca.issue([host]);
  const models: (string | string[] | undefined)[] = [];
  const model = createServer(await certify('api.anthropic.com'), (request, response) => {
    models.push(request.headers['x-api-key']);
    sendJson(response, request.headers['x-api-key'] === KEY ? 200 : 401, {});
  });
  const modelPort = await listen(model);
  const api = await startService(await certify('api.github.com'), `token ${GITHUB_TOKEN}`, (_request, response) =>
    sendJson(response, 200, { login: 'octo' }),
  );
  const registry = await startService(await certify(NPM_HOST), `Bearer ${NPM_TOKEN}`, npmRegistry());
  const git = await startGitUpstream(await certify('github.com'), 'x-access-token', GITHUB_TOKEN);
  const ports = {
    'api.anthropic.com': modelPort,
    'api.github.com': api.port,
    'github.com': git.port,
    [NPM_HOST]: registry.port,
  };
  const resolve = Object.entries(ports).flatMap(([host, port]) => ['--resolve', `${host}:127.0.0.1:${port}`]);
  const stop = async (): Promise<void> => {
    model.closeAllConnections();
    model.close();
    await Promise.all([api, registry, git].map((each) => each.close()));
  };
  return { models, api, registry, git, flags: ['--upstream-ca', ca.file, ...resolve], stop };
}

const svc = (...args: readonly string[]): Promise<Finished> => run(SVC, args, { env });
const atTerminal = (...args: readonly string[]): Promise<Finished> =>
  run(pythonWith(STANDARD_MODULES) ?? 'python3', ['-c', AT_A_TERMINAL, join(folder, 'clipboard'), SVC, ...args], {
    env,
    cwd: join(folder, 'work'),
  });

describe('svc claude, from nothing', () => {
  it('starts svc, asks once, stores and binds, approves the placeholder, and runs the agent', async () => {
    const first = await atTerminal('claude', '-p', 'hello');
    expect(first).toMatchObject({ code: 7 });
    expect(first.stdout).toContain('svc: started in the background; "svc down" stops it');
    expect(first.stdout).toContain(
      'Anthropic API key (https://platform.claude.com/settings/keys), sent only to api.anthropic.com',
    );
    const placeholder = /agent -p hello (sk-ant-api03-\S+)/.exec(first.stdout)?.[1] ?? '';
    expect(placeholder).toMatch(/^sk-ant-api03-[A-Za-z0-9]{93}AA$/);
    expect(first.stdout).toMatch(/svc: 0 requests, 0 with a credential, 0 refused; svc audit list --session ses_\w+/);
    expect(foundIn(first.stdout, KEY)).toEqual([]);
    expect(readFileSync(join(folder, 'user', '.claude.json'), 'utf8')).toContain(`"${placeholder.slice(-20)}"`);

    // What runs on in the background does not keep what the shell had.
    const processes = searchProcesses(OF_SHELL);
    expect(processes.searched).toBeGreaterThan(0);
    expect(processes.holding).toEqual([]);

    const second = await svc('claude', '-p', 'again');
    expect(second).toMatchObject({ code: 7, stdout: `agent -p again ${placeholder}\n` });
    for (const name of ['state', 'user']) expect(searchFiles(join(folder, name), KEY).holding).toEqual([]);
    expect((await svc('agents')).stdout).toContain('vault://user/anthropic (key)');
    expect((await svc('status')).code).toBe(0);
    expect((await svc('down')).code).toBe(0);
  });

  it.skipIf(!succeeds('gh --version && npm --version && test -x "$(git --exec-path)/git-http-backend"'))(
    'has a model, gh, git push and npm after four commands and three pastes',
    async () => {
      const services = await startServices();
      try {
        writeFileSync(join(folder, 'bin', 'claude'), WORKING_AGENT);
        await svc('up', '--detach', '--control-port', '0', '--proxy-port', '0', ...services.flags);
        const pastes: [secret: string, command: readonly string[]][] = [
          [GITHUB_TOKEN, ['seal', 'github']],
          [NPM_TOKEN, ['seal', 'npm', '--host', NPM_HOST]],
          [KEY, ['claude', '-p', join(folder, 'work')]],
        ];
        const shown: string[] = [];
        for (const [secret, command] of pastes) {
          writeFileSync(join(folder, 'clipboard'), secret);
          const done = await atTerminal(...command);
          shown.push(done.stdout);
          expect([command, done.code, done.stdout]).toEqual([command, 0, expect.anything()]);
        }
        const [last = ''] = shown.slice(-1);
        for (const text of ['model 200', 'login octo', 'pushed', '+ made-here@1.2.3']) expect(last).toContain(text);
        expect(services.git.git('show', 'main:file')).toBe('content\n');
        expect(services.models).toEqual([KEY]);
        for (const { wanted, requests } of [services.api, services.registry]) {
          expect(new Set(requests.map(({ authorization }) => authorization))).toEqual(new Set([wanted]));
        }
        const secrets = [KEY, GITHUB_TOKEN, NPM_TOKEN];
        for (const secret of secrets) expect(foundIn(shown.join(''), secret)).toEqual([]);
        for (const name of ['state', 'user', 'work']) {
          expect(searchFiles(join(folder, name), secrets).holding).toEqual([]);
        }
      } finally {
        await services.stop();
      }
    },
  );

  it('starts nothing for an agent that is not installed', async () => {
    const plain = { ...env, PATH: `${join(folder, 'bin')}:/usr/bin:/bin` };
    expect(await run(SVC, ['qwen'], { env: plain })).toMatchObject({ code: 127, stdout: '' });
    expect(existsSync(join(folder, 'state'))).toBe(false);
  });

  it('also stores a credential from stdin, for scripts', async () => {
    const stored = await run(SVC, ['login', 'claude', '--stdin'], { env, input: KEY });
    expect(stored).toMatchObject({ code: 0 });
    expect(stored.stdout).toContain('vault://user/anthropic');
    expect((await svc('run', '--quiet', 'claude')).stdout).toMatch(/^agent {2}sk-ant-api03-/);
  });
});
