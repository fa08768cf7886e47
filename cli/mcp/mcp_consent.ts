import { commandDangers, refusalOf } from '../../shared/mcp/command_dangers.ts';
import { consentText, findUncheckedCode } from '../../shared/mcp/consent_hash.ts';
import { isPlacedInContainer } from '../../shared/mcp/server_isolation.ts';
import { requireOutside } from '../launch/hosts/allow_command.ts';
import { homeOf } from '../up/home.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { consentView } from './mcp_consent_view.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { hostsToConsent } from './mcp_isolation.ts';
import { imageNews, offerImage } from './mcp_image.ts';
import { learnToolsHere } from './mcp_learn.ts';
import { installOffered, offerPackage, type PackageOffer } from './mcp_package.ts';
import { addScripts, requireScriptsOptions } from './mcp_scripts.ts';
import { type MachineServer, machineServer, serversOfMachine } from './mcp_machine.ts';
import { ok } from '../../shared/model/result.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { askLine, askYes } from '../terminal/ask.ts';

export interface ConsentOptions {
  readonly yes?: boolean;
  readonly unchecked?: boolean;
  readonly withdraw?: boolean;
  /** The npm packages whose install scripts may run. */
  readonly scripts?: readonly string[];
}

/** `svc mcp consent [SERVER]`. */
export async function consentToServers(call: Call<ConsentOptions>): Promise<number | undefined> {
  const { args, options, print, context } = call;
  const [wanted] = args;
  requireScriptsOptions(call);
  const { servers } = await serversOfMachine(call);
  if (options.withdraw === true) return withdraw(call, servers, wanted);
  const waiting = wanted === undefined ? servers.filter(isWaiting) : [machineServer(servers, wanted)];
  const news = await imageNews(call, wanted === undefined ? servers : waiting);
  for (const text of news) print.warn(toPrintable(text));
  if (waiting.length === 0) {
    print.data({ items: [] }, () => (print.person ? 'No server waits for consent on this machine.\n' : ''));
    return undefined;
  }
  if (options.yes !== true && (!context.interactive || print.json)) return listOnly(call, waiting);
  requireOutside(call, homeOf(context, options), 'which may not consent to what runs on this machine');
  let refused = 0;
  for (const server of waiting) if (!(await consentToOne(call, server))) refused += 1;
  return refused === 0 ? undefined : EXIT.failed;
}

function isWaiting({ consent, server }: MachineServer): boolean {
  return consent === 'needed' && server.enabled;
}

/** Without a terminal, prints what consent is needed for and gives none. */
async function listOnly(call: Call, waiting: readonly MachineServer[]): Promise<number> {
  const { print, context } = call;
  const open = waiting.filter(({ consent }) => consent === 'needed');
  const items = open.map(({ server, consent_hash: hash, last_consent: last, missing }) => ({
    id: server.id,
    name: server.name,
    command: server.command,
    env: server.env,
    version: server.version,
    isolation: server.isolation,
    registry_id: server.registryId,
    consent_hash: hash,
    last_consent: last,
    missing,
    dangers: commandDangers(server.command, server.env),
    unchecked: findUncheckedCode(server),
  }));
  const isolations = new Map(
    await Promise.all(open.map(async (known) => [known, await isolationText(call, known)] as const)),
  );
  const view = (known: MachineServer): string =>
    consentView(known, context.now(), print.paint, { isolation: isolations.get(known) ?? '' });
  print.data({ items }, () => open.map(view).join('\n'));
  if (open.length === 0) return EXIT.ok;
  print.note('svc: stdin is not a terminal: run this at a terminal, or use --yes');
  return EXIT.failed;
}

function hostsOf({ server, allowed_hosts: hosts }: MachineServer): readonly string[] | null | undefined {
  return isPlacedInContainer(server) ? hosts : undefined;
}

async function isolationText(call: Call, known: MachineServer): Promise<string> {
  return (await hostsToConsent(call, known)).text;
}

/** True if this machine may run the server now. */
async function consentToOne(call: Call<ConsentOptions>, known: MachineServer): Promise<boolean> {
  const { print, context, options } = call;
  const { server, consent } = known;
  const danger = refusalOf(commandDangers(server.command, server.env));
  // No package manager and no engine is started for a server that svc never runs.
  const image = danger === null ? await offerImage(call, known) : ok(null);
  if (!image.ok) {
    print.warn(toPrintable(`${server.name}: no consent given: ${image.error}`));
    return false;
  }
  if (consent !== 'needed' && image.value?.isNew !== true) {
    const why = consent === 'given' ? 'already has your consent' : 'runs no program on this machine';
    print.note(`${server.name} ${why}`);
    if (consent !== 'given') return true;
    return addScripts(call, known, await offerPackage(call, server, hostsOf(known), options.scripts));
  }
  const isolation = await hostsToConsent(call, known);
  const offer = danger === null ? await offerPackage(call, server, isolation.hosts, options.scripts) : null;
  const texts = { isolation: isolation.text, ...packageText(offer), image: image.value };
  print.raw(`${consentView(known, context.now(), print.paint, texts)}\n`);
  if (danger !== null) {
    print.warn(`svc never runs ${server.name}, even with consent: it ${toPrintable(danger.message)}`);
    return false;
  }
  if (!(await isAgreed(call, server))) {
    print.note(`${server.name}: no consent given`);
    return false;
  }
  // Before the consent: a gateway starts the server as soon as it has the consent.
  await installOffered(call, server.name, offer);
  await learnToolsHere(call, known, offer);
  const shown = { server, isToldUnchecked: true, hosts: isolation.hosts, image: image.value };
  await giveConsent(sidecarClient(context, options), shown);
  print.note(`${server.name}: consent given; gateways start it when a client uses it`);
  return true;
}

/** Unchecked code needs the server's name or a separate flag as consent, because "y" is easily typed by habit. */
async function isAgreed(call: Call<ConsentOptions>, server: MachineServer['server']): Promise<boolean> {
  const { options, context, print } = call;
  const isUnchecked = findUncheckedCode(server).length > 0;
  if (!isUnchecked) {
    return options.yes === true || (await askYes(context, 'Run this on this machine with your rights?'));
  }
  if (options.unchecked === true && options.yes === true) return true;
  if (options.yes === true || !context.interactive) {
    print.warn(`${server.name} runs unchecked code, for which --yes is not enough: add --unchecked`);
    return false;
  }
  const question = `This runs unchecked code. To run it on this machine with your rights, type its name (${server.name}): `;
  // Ctrl-C and end of input count as no.
  return (await askLine(context, question))?.trim() === server.name;
}

function packageText(offer: PackageOffer | null): { readonly packageText?: string } {
  return offer === null ? {} : { packageText: offer.text };
}

interface GivenConsent extends Pick<MachineServer, 'server'> {
  readonly isToldUnchecked: boolean;
  /** As the person was told; see {@link hostsToConsent}. */
  readonly hosts: readonly string[] | null | undefined;
  /** As the person was told; null for a server that starts no container of its own. */
  readonly image: { readonly id: string } | null;
}

/** Sends the sidecar the hash of the configuration that the person saw. If the configuration has changed since, the sidecar refuses. */
export async function giveConsent(
  sidecar: HttpClient,
  { server, isToldUnchecked: warnsOfUnchecked, hosts, image }: GivenConsent,
): Promise<void> {
  const hash = sha256Hex(consentText(server));
  const isUnchecked = warnsOfUnchecked && findUncheckedCode(server).length > 0;
  const body = {
    consent_hash: hash,
    ...(isUnchecked && { unchecked: true }),
    ...(hosts !== undefined && { allowed_hosts: hosts }),
    ...(image !== null && { image: image.id }),
  };
  await sidecar.callEmpty('POST', `/v1/mcp/servers/${server.id}/consent`, { body });
}

async function withdraw(
  { context, options, print }: Call,
  servers: readonly MachineServer[],
  wanted: string | undefined,
): Promise<undefined> {
  if (wanted === undefined) throw new CliError(EXIT.usage, '--withdraw needs the name or id of a server');
  const { server } = machineServer(servers, wanted);
  await sidecarClient(context, options).callEmpty('DELETE', `/v1/mcp/servers/${server.id}/consent`);
  print.note(`${server.name}: consent withdrawn; the server is stopped`);
}
