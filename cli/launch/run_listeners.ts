import type { SessionAccess } from '../../sandbox/launch/session_environment.ts';
import type { RelayAccess } from '../../sandbox/relay/relay_environment.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HostSandbox } from '../sandbox/host_sandbox.ts';
import type { MetadataEndpoint } from './metadata_endpoint.ts';
import type { RunOptions } from './run_options.ts';

/** A session without a relay. */
export const NO_RELAY: RelayAccess = { variables: {}, close: () => Promise.resolve() };

/** What listens for the session beside the sidecar: a sandbox has its own. */
export async function openListeners(
  call: Call<RunOptions>,
  session: SessionAccess,
  box: HostSandbox | null,
): Promise<[RelayAccess, MetadataEndpoint | null]> {
  const relay = await openRelayOf(call, session);
  try {
    return [relay, box === null ? await openMetadataOf(session) : null];
  } catch (error) {
    await relay.close();
    throw error;
  }
}

/** The session's relay, if requested. */
async function openRelayOf(call: Call<RunOptions>, session: SessionAccess): Promise<RelayAccess> {
  if (call.options.relay !== true) return NO_RELAY;
  // Loaded on use, so that a run without a relay starts faster.
  const { openRelay } = await import('../../sandbox/relay/relay_environment.ts');
  const opened = await openRelay(session, call.context.env, process.getuid?.() ?? null);
  if (opened.ok) return opened.value;
  throw new CliError(EXIT.notStarted, `--relay: ${opened.error.message}`, ['Run the command without --relay.']);
}

/** The listener for Google's libraries, if the session has tokens for them; null without one. */
async function openMetadataOf({ proxyUrl, sdkEndpoints = [] }: SessionAccess): Promise<MetadataEndpoint | null> {
  if (!sdkEndpoints.includes('google')) return null;
  // Loaded on use, so that a run without it starts faster.
  const { openMetadataEndpoint } = await import('./metadata_endpoint.ts');
  const { origin, password } = new URL(proxyUrl);
  return openMetadataEndpoint({ origin, token: decodeURIComponent(password) });
}
