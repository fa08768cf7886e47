import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AGENT_LOGINS } from '../../sandbox/bubblewrap/visible_paths.ts';
import type { Call } from '../command_line.ts';
import type { RunOptions } from '../launch/run_options.ts';
import { recordGateway } from '../mcp/configured_gateway.ts';
import { printerFor } from '../terminal/output.ts';
import { TestHome, testContext } from '../testing/run_cli.ts';
import { AGENT_TITLES } from './agent_names.ts';
import type { AgentProfile } from './agent_profile.ts';
import { findProfile } from './agent_profiles.ts';
import { agentSandbox } from './agent_sandbox.ts';

let home: TestHome;
let said: { readonly text: string };

beforeEach(() => {
  home = new TestHome();
  mkdirSync(join(home.path, 'user', 'project'), { recursive: true });
});
afterEach(() => home.remove());

function callWith(
  options: RunOptions,
  env: Readonly<Record<string, string>> = {},
  folder = 'project',
): Call<RunOptions> {
  const userHome = join(home.path, 'user');
  const made = testContext(home, { env, userHome, workingDirectory: join(userHome, folder) });
  said = made.stderr;
  return { context: made.context, args: [], options, print: printerFor(made.context, {}) };
}

function profileOf(name: string): AgentProfile {
  const { context } = testContext(home);
  return findProfile({ root: context.root, home: home.path, uid: process.getuid?.() }, name).profile;
}

describe('the sandbox of an agent', () => {
  it('is there with --sandbox, and with `always`, whatever the machine can', () => {
    for (const [options, env] of [
      [{ sandbox: true }, {}],
      [{}, { SVC_AGENT_SANDBOX: 'always' }],
    ] as const) {
      expect(agentSandbox(callWith(options, env), profileOf('goose'))).toMatchObject({
        isWanted: true,
        agent: 'goose',
      });
      expect(said.text).toContain('svc: sandbox: ');
    }
  });

  it('is not there with --no-sandbox, and with `never`', () => {
    const always = { SVC_AGENT_SANDBOX: 'always' };
    expect(agentSandbox(callWith({ sandbox: false }, always), profileOf('claude')).isWanted).toBe(false);
    expect(agentSandbox(callWith({}, { SVC_AGENT_SANDBOX: 'never' }), profileOf('claude')).isWanted).toBe(false);
  });

  it.each([
    ['whose profile says nothing about it', 'goose', {}, 'project', 'the profile does not say'],
    ['with a relay', 'claude', { relay: true }, 'project', '--relay listens outside'],
    ['in the state directory', 'claude', {}, '..', 'lies in the state directory of svc'],
  ] as const)(
    'is not there by default for an agent %s, and the reason is told',
    (_what, name, options, folder, why) => {
      const call = callWith(options, { SVC_AGENT_SANDBOX: 'auto' }, folder);
      expect(agentSandbox(call, profileOf(name)).isWanted).toBe(false);
      expect(said.text).toContain('svc: no sandbox: ');
      expect(said.text).toContain(why);
    },
  );

  it('has the MCP gateway if a person had svc add it, and not by what a configuration says by itself', async () => {
    const file = join(home.path, 'user', '.claude.json');
    writeFileSync(file, '{"mcpServers":{"svc":{"command":"svc","args":["mcp","gateway"]}}}');
    const auto = { SVC_AGENT_SANDBOX: 'auto' };
    expect(agentSandbox(callWith({ sandbox: true }), profileOf('claude')).hasGateway).toBe(false);
    expect(said.text).toContain(`${file} lists no servers in the sandbox`);
    expect(said.text).toContain('svc mcp export --client claude-code --write');
    await recordGateway(
      callWith({}).context.env['SVC_HOME'] ?? home.path,
      { client: 'claude-code', path: file, project: null },
      0,
    );
    const given = agentSandbox(callWith({ sandbox: true }), profileOf('claude'));
    expect(given).toMatchObject({ isWanted: true, hasGateway: true });
    agentSandbox(callWith({}, auto), profileOf('claude'));
    expect(said.text).not.toContain('gateway');
  });

  it("shows the agent's own folder and file, which are made if they are not there", () => {
    const { writable } = agentSandbox(callWith({ sandbox: true }), profileOf('claude'));
    const [folder, file] = ['.claude', '.claude.json'].map((name) => join(home.path, 'user', name));
    expect(writable).toEqual([folder, file]);
    expect(statSync(folder ?? '').mode & 0o777).toBe(0o700);
    expect(readFileSync(file ?? '', 'utf8')).toBe('{}\n');
  });

  it('shows the folder that a variable of the agent names instead', () => {
    const moved = join(home.path, 'user', 'moved');
    const { writable } = agentSandbox(callWith({ sandbox: true }, { CLAUDE_CONFIG_DIR: moved }), profileOf('claude'));
    expect(writable).toEqual([moved, join(moved, '.claude.json')]);
    expect(existsSync(join(home.path, 'user', '.claude'))).toBe(false);
  });

  it('hides the logins of every other agent that has one', () => {
    for (const name of Object.keys(AGENT_TITLES)) {
      const files = profileOf(name).credential_files.map(({ path }) => path.slice('~/'.length));
      expect([name, AGENT_LOGINS[name] ?? []]).toEqual([name, files]);
    }
  });
});
