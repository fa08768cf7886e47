import { consentText, needsConsent, findUncheckedCode } from '../../shared/mcp/consent_hash.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { daemonClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { giveConsent } from './mcp_consent.ts';
import { serversAfterChange, serversOfMachine } from './mcp_machine.ts';

/**
 * Whoever types a configuration at a machine has read it: that counts as consent there. `typed` is what was typed, never
 * what a control plane says of it; a sidecar that has something else gives none. Null where nobody has said that this machine
 * may run it. Returns once this machine has heard of the change; false where there is no consent now.
 */
export async function consentHere(call: Call, typed: McpServer | null): Promise<boolean> {
  const servers = await serversAfterChange(call);
  if (typed === null) return false;
  if (!needsConsent(typed)) return true;
  const known = servers?.find(({ server }) => server.id === typed.id);
  if (known === undefined || consentText(known.server) !== consentText(typed)) return false;
  // What nobody checked is asked about apart, by `svc mcp consent`: typing the command said nothing of that.
  if (findUncheckedCode(typed).length > 0) return known.consent === 'given';
  try {
    if (known.consent !== 'given')
      await giveConsent(daemonClient(call.context, call.options), { server: typed, isToldUnchecked: false });
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
  try {
    const { servers } = await serversOfMachine(call);
    const known = servers.find(({ server: { id } }) => id === server.id);
    return known?.consent === 'given' && consentText(known.server) === consentText(server);
  } catch (error) {
    // No sidecar runs here, or it is of another control plane.
    if (error instanceof CliError) return false;
    throw error;
  }
}
