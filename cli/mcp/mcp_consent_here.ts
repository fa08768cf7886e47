import { consentText, needsConsent, findUncheckedCode } from '../../shared/mcp/consent_hash.ts';
import { describeFetchAtStart } from '../../shared/mcp/fetch_at_start.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { sidecarClient } from '../clients.ts';
import { isInsideSession } from '../launch/hosts/allow_command.ts';
import { homeOf } from '../up/home.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import { giveConsent } from './mcp_consent.ts';
import { type ConsentedHosts, hostsToConsent } from './mcp_isolation.ts';
import { typedImage } from './mcp_image.ts';
import { learnToolsHere } from './mcp_learn.ts';
import { installOffered, offerPackage } from './mcp_package.ts';
import { type MachineServer, serversAfterChange, serversOfMachine } from './mcp_machine.ts';

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
  // An agent typed it: a person consents to it outside of the session.
  if (isInsideSession(call, homeOf(call.context, call.options))) return known.consent === 'given';
  // Unchecked code needs a separate `svc mcp consent`: typing the command does not cover it.
  if (findUncheckedCode(typed).length > 0) return known.consent === 'given';
  const isolation = await hostsToConsent(call, known, typedHosts);
  const offer = await offerPackage(call, typed, isolation.hosts);
  if (offer !== null && offer.plan !== null) call.print.note(toPrintable(`installs ${offer.text}`));
  const fetches = offer === null ? describeFetchAtStart(typed.command) : null;
  if (fetches !== null) call.print.note(toPrintable(`${typed.name}: ${fetches}`));
  await installOffered(call, typed.name, offer);
  if (known.consent !== 'given') await learnToolsHere(call, known, offer);
  try {
    return known.consent === 'given' || (await consentTyped(call, { ...known, server: typed }, isolation));
  } catch (error) {
    // The configuration is stored anyway; `svc mcp consent` can give consent later.
    if (error instanceof CliError) return false;
    throw error;
  }
}

/** False if the image of its own `docker run` cannot be had, without which there is nothing to consent to. */
async function consentTyped(call: Call, known: MachineServer, { hosts, text }: ConsentedHosts): Promise<boolean> {
  const { context, options, print } = call;
  const { server } = known;
  const image = await typedImage(call, known);
  if (!image.ok) {
    print.warn(toPrintable(`${server.name}: no consent given: ${image.error}`));
    return false;
  }
  const shown = { server, isToldUnchecked: false, hosts, image: image.value };
  await giveConsent(sidecarClient(context, options), shown);
  if (hosts !== undefined && print.person) print.note(toPrintable(`${server.name} runs ${text}`));
  if (image.value !== null) print.note(toPrintable(`${server.name} runs the image ${image.value.text}`));
  return true;
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
