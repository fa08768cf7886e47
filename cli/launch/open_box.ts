import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Egress } from '../../shared/model/egress.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HostSandbox } from '../sandbox/host_sandbox.ts';
import { isBoxed, type RunInSession, type RunOptions } from './run_options.ts';

/** The sandbox of the run, which has started; null for a run without one. */
export async function openBox(
  call: Call<RunOptions>,
  wanted: RunInSession,
  egress: Egress,
): Promise<HostSandbox | null> {
  if (!isBoxed(call, wanted)) return null;
  const { options, context } = call;
  if (options.relay === true) {
    throw new CliError(EXIT.notStarted, '--relay listens outside of the sandbox, which reaches nothing there', [
      'For Java and Chromium in a sandbox: svc launch --relay',
    ]);
  }
  // Loaded on use, so that a run without a sandbox starts faster.
  const typed = (paths: readonly string[] = []): readonly string[] =>
    paths.map((path) => requirePath(resolve(context.workingDirectory, path)));
  const readable = [...typed(options.sandboxRead), ...(wanted.sandbox?.readable ?? [])];
  const writable = [...typed(options.sandboxWrite), ...(wanted.sandbox?.writable ?? [])];
  const agent = wanted.sandbox?.agent ?? null;
  const visible = { egress, readable, writable, agent };
  if (process.platform === 'darwin') {
    const { openMacSandbox } = await import('../sandbox/mac_sandbox.ts');
    return openMacSandbox(call, visible, wanted);
  }
  const { openHostSandbox } = await import('../sandbox/host_sandbox.ts');
  return openHostSandbox(call, visible, wanted);
}

function requirePath(path: string): string {
  if (existsSync(path)) return path;
  throw new CliError(EXIT.notStarted, `${path} does not exist, so the sandbox cannot show it`);
}
