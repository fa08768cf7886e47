import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { findBubblewrap, machineFacts, probeBubblewrap } from '../../sandbox/bubblewrap/find_bubblewrap.ts';
import type { Call } from '../command_line.ts';
import { homeOf } from '../up/home.ts';
import { describeUnrecordedGateway, hasGivenGateway } from '../mcp/configured_gateway.ts';
import { type CliContext, settingsOf } from '../context.ts';
import type { RunOptions, RunSandbox } from '../launch/run_options.ts';
import { planFor } from '../sandbox/host_sandbox.ts';
import type { AgentProfile } from './agent_profile.ts';

/**
 * The sandbox of an agent: what `--sandbox` or `--no-sandbox` says, else the setting. By default an agent has one if its profile says
 * what it needs in it and the machine can make one (decision 0124). One line says which boundary is in use.
 */
export function agentSandbox(call: Call<RunOptions>, profile: AgentProfile): RunSandbox {
  const { context, options, print } = call;
  const note = (text: string): void => {
    if (options.quiet !== true) print.note(`svc: ${text}`);
  };
  const wish = wishOf(call);
  if (wish === 'never') return { isWanted: false, readable: [], writable: [] };
  const wanted = { agent: profile.name, readable: [], writable: homePaths(context, profile) };
  const why = wish === 'always' ? null : whyNone(call, profile, wanted);
  if (why !== null) {
    note(`no sandbox: ${why}. ${profile.title} can read your files; svc run --sandbox ${profile.name} insists`);
    return { isWanted: false, readable: [], writable: [] };
  }
  prepareHome(wanted.writable);
  const hasGateway = hasGivenGateway(homeOf(context, options), profile.name, context.workingDirectory);
  const unrecorded = hasGateway ? null : describeUnrecordedGateway(profile.name, context);
  if (unrecorded !== null) note(unrecorded);
  note(`sandbox: ${profile.title} sees this folder and its own settings, and has no network but the proxy`);
  return { isWanted: true, hasGateway, ...wanted };
}

function wishOf({ context, options }: Call<RunOptions>): 'auto' | 'always' | 'never' {
  if (options.sandbox !== undefined) return options.sandbox ? 'always' : 'never';
  return settingsOf(context).agentSandbox ?? 'auto';
}

/** Why there is no sandbox where none is demanded; null if there is one. */
function whyNone(
  call: Call<RunOptions>,
  profile: AgentProfile,
  wanted: Pick<RunSandbox, 'readable' | 'writable'> & { readonly agent: string },
): string | null {
  if (profile.sandbox === undefined) return 'the profile does not say what the agent needs in one';
  if (call.options.relay === true) return '--relay listens outside of it';
  const planned = planFor(call, wanted, { command: profile.command, folder: null });
  if (!planned.ok) return planned.error.message;
  const found = findBubblewrap(machineFacts(call.context.env['PATH'] ?? ''));
  if (!found.ok) return found.error.message;
  const probed = probeBubblewrap(found.value);
  return probed.ok ? null : probed.error.message;
}

/** What the agent keeps in the home, or in the folder that a variable of its own names. */
function homePaths(
  { env, userHome }: Pick<CliContext, 'env' | 'userHome'>,
  { sandbox }: AgentProfile,
): readonly string[] {
  return (sandbox?.writes ?? []).map(({ path, moved_by: movedBy }) => {
    const folder = movedBy === undefined ? '' : (env[movedBy] ?? '');
    if (folder === '') return join(userHome, path.slice('~/'.length));
    return isFile(path) ? join(folder, basename(path)) : folder;
  });
}

const isFile = (path: string): boolean => path.endsWith('.json');

/** What is not there yet would be made in the sandbox's own home, and be gone with it. */
function prepareHome(paths: readonly string[]): void {
  for (const path of paths) {
    mkdirSync(isFile(path) ? dirname(path) : path, { recursive: true, mode: 0o700 });
    if (isFile(path) && !existsSync(path)) writeFileSync(path, '{}\n', { mode: 0o600, flag: 'wx' });
  }
}
