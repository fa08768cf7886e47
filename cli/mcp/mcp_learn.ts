import { join } from 'node:path';
import { readPackageCommand } from '../../shared/mcp/package_command.ts';
import { hasReference } from '../../shared/mcp/references.ts';
import { readMembers } from '../../shared/mcp/tools/tool_definition.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from '../up/home.ts';
import type { MachineServer } from './mcp_machine.ts';
import type { PackageOffer } from './mcp_package.ts';

const MOST_NAMES = 20;

/**
 * Starts a server whose package is installed once without network, files and secrets, and keeps the tools that it lists, so that
 * a person sees them before the first call, and whatever differs later waits (decision 0099). Nothing depends on it: where it
 * does not work, the tools of the first real start are the first ones. It comes before the consent, after which a gateway may
 * start the server at any moment.
 */
export async function learnToolsHere(
  call: Call,
  { server, reviewed, credentials }: Pick<MachineServer, 'server' | 'reviewed' | 'credentials'>,
  offer: PackageOffer | null,
): Promise<void> {
  const { context, options, print } = call;
  const installed = offer?.store.find(offer.spec) ?? null;
  const args = readPackageCommand(server.command)?.args ?? null;
  // A control plane of an earlier version keeps no tools.
  if (installed === null || args === null || (reviewed ?? null) === null) return;
  const unknown = (why: string): void =>
    print.note(toPrintable(`the tools of ${server.name} are learned at its first start: ${why}`));
  if (args.some(hasReference)) return unknown('an argument of its command holds a credential');
  print.note(toPrintable(`starts ${server.name} once without network, files and credentials, to see its tools`));
  // It loads a client of the protocol, which no other command needs.
  const learnTools = context.learnTools ?? (await import('../../gateway/trial/learn_tools.ts')).learnTools;
  const learned = await learnTools({
    server,
    program: installed.start,
    args,
    packageFolder: installed.folder,
    env: context.env,
    version: context.version,
    signal: context.stop,
  });
  if (context.stop.aborted) throw new CliError(EXIT.failed, 'stopped: no consent was given');
  if (!learned.ok) return unknown(`there, ${learned.error}`);
  const { tools, place } = learned.value;
  const body = { server_id: server.id, tools: tools.map(readMembers) };
  try {
    await sidecarClient(context, options).callEmpty('POST', '/v1/mcp/tools', { body });
  } catch (error) {
    if (error instanceof CliError) return unknown(error.message);
    throw error;
  }
  // The first start may be slow too: until then, clients get these.
  const { KeptLists } = await import('../../gateway/routing/kept_lists.ts');
  await new KeptLists(join(homeOf(context, options), 'mcp')).write('tools', server, credentials, tools);
  const names = tools.slice(0, MOST_NAMES).map(({ name }) => name);
  const more = tools.length > names.length ? `, and ${tools.length - names.length} more` : '';
  const count = tools.length === 1 ? 'one tool' : `${tools.length} tools`;
  print.note(toPrintable(`${server.name} lists ${count} in a ${place} without network: ${names.join(', ')}${more}`));
  print.note(`Their descriptions: svc mcp tools ${server.name}`);
}
