import { consentText, needsConsent, findUncheckedCode } from '../../shared/mcp/consent_hash.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { sidecarClient } from '../clients.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { giveConsent } from './mcp_consent.ts';
import { type ConsentedHosts, hostsToConsent } from './mcp_isolation.ts';
import { installOffered, offerPackage } from './mcp_package.ts';
import { serversAfterChange, serversOfMachine } from './mcp_machine.ts';

/**
 * A person who types a configuration has read it, so typing it counts as consent on this machine. `typed` is the typed
 * configuration, never the control plane's version; if the sidecar has a different one, no consent is given. `typed` is null
 * if the change must not give consent. `typedHosts`: the hosts that its container may reach. Returns after this machine has
 * received the change; false if there is no consent.
 */
export async function giveConsentHere(
  call: Call,
  typed: McpServer | null,
  typedHosts: readonly string[] = [],
): Promise<boolean> {
  const servers = await serversAfterChange(call);
  if (typed === null) return false;
  if (!needsConsent(typed)) return true;
  const known = servers?.find(({ server }) => server.id === typed.id);
  if (known === undefined || consentText(known.server) !== consentText(typed)) return false;
  // Unchecked code needs a separate `svc mcp consent`: typing the command does not cover it.
  if (findUncheckedCode(typed).length > 0) return known.consent === 'given';
  const isolation = await hostsToConsent(call, known, typedHosts);
  const offer = await offerPackage(call, typed, isolation.hosts);
  if (offer !== null && offer.plan !== null) call.print.note(toPrintable(`installs ${offer.text}`));
  await installOffered(call, typed.name, offer);
  try {
    if (known.consent !== 'given') await consentTyped(call, typed, isolation);
    return true;
  } catch (error) {
    // The configuration is stored anyway; `svc mcp consent` can give consent later.
    if (error instanceof CliError) return false;
    throw error;
  }
}

async function consentTyped(call: Call, typed: McpServer, { hosts, text }: ConsentedHosts): Promise<void> {
  await giveConsent(sidecarClient(call.context, call.options), { server: typed, isToldUnchecked: false, hosts });
  if (hosts !== undefined && call.print.person) call.print.note(toPrintable(`${typed.name} runs ${text}`));
}

/** Whether this machine has consent to run exactly this configuration. */
export async function hasConsentHere(call: Call, server: McpServer): Promise<boolean> {
  if (!needsConsent(server)) return true;
  try {
    const { servers } = await serversOfMachine(call);
    const known = servers.find(({ server: { id } }) => id === server.id);
    return known?.consent === 'given' && consentText(known.server) === consentText(server);
  } catch (error) {
    // No sidecar runs here, or it belongs to another control plane.
    if (error instanceof CliError) return false;
    throw error;
  }
}
