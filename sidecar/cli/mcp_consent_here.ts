import { consentText, needsConsent } from '../../shared/mcp/consent_hash.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { daemonClient } from './clients.ts';
import type { Call } from './command_line.ts';
import { CliError } from './exit_codes.ts';
import { giveConsent } from './mcp_consent.ts';
import { type MachineServer, serversOfMachine } from './mcp_machine.ts';

/**
 * Whoever types a configuration at a machine has read it: that counts as consent there. `typed` is what was typed, never
 * what a control plane says of it; a sidecar that has something else gives none. False where there is no consent now.
 */
export async function consentHere(call: Call, typed: McpServer): Promise<boolean> {
  if (!needsConsent(typed)) return true;
  const known = await knownHere(call, typed.id);
  if (known === null || consentText(known.server) !== consentText(typed)) return false;
  try {
    if (known.consent !== 'given') await giveConsent(daemonClient(call.context, call.options), { server: typed });
    return true;
  } catch (error) {
    // The configuration is stored all the same, and can be consented to by `svc mcp consent`.
    if (error instanceof CliError) return false;
    throw error;
  }
}

/** Whether this machine may run exactly this configuration. */
export async function isConsentedHere(call: Call, server: McpServer): Promise<boolean> {
  if (!needsConsent(server)) return true;
  const known = await knownHere(call, server.id);
  return known?.consent === 'given' && consentText(known.server) === consentText(server);
}

/** The server as the sidecar of this machine has it; null where none runs, or it is another control plane's. */
async function knownHere(call: Call, id: string): Promise<MachineServer | null> {
  try {
    const { servers } = await serversOfMachine(call);
    return servers.find(({ server }) => server.id === id) ?? null;
  } catch (error) {
    if (error instanceof CliError) return null;
    throw error;
  }
}
