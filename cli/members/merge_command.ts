import { MERGED_KINDS, type MergedKind, mergePreview, mergeReply } from '../../shared/wire/people/merges.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askOrStop } from '../terminal/ask.ts';

export interface MergeOptions {
  readonly yes?: boolean;
}

const WORDS: Readonly<Record<MergedKind, string>> = {
  secret: 'secrets',
  host_binding: 'host bindings',
  tunnel_host: 'tunnelled hosts',
  client_certificate: 'client certificates',
  connector: 'connectors',
  mcp_server: 'MCP servers',
};

/** `svc enterprise merge ID`: shows what moves and what clashes, asks for the slug, and has it move. */
export async function mergeEnterprise({ context, options, print, args }: Call<MergeOptions>): Promise<undefined> {
  const client = controlClient(context, options);
  const path = `/v1/enterprises/${encodeURIComponent(args[0] ?? '')}/merge`;
  const { slug, name, moves, clashes } = await client.call('GET', path, mergePreview);
  if (clashes.length > 0) {
    const lines = clashes.map(({ kind, name: taken }) => `${kind} ${taken}`);
    throw new CliError(EXIT.failed, 'these names are taken: rename or delete them on one side', lines);
  }
  print.note(`From ${name} move: ${countsOf(moves)}. They become your own here.`);
  if (options.yes !== true) {
    if (!context.interactive) throw new CliError(EXIT.usage, '--yes is missing: there is no terminal to ask at');
    const typed = await askOrStop(context, `Type ${slug} to move everything here: `);
    if (typed.trim() !== slug) throw new CliError(EXIT.failed, `that is not ${slug}: nothing moved`);
  }
  const moved = await client.call('POST', path, mergeReply, { body: { confirm: slug } });
  print.line(moved, `moved ${countsOf(moved.moves)}; ${name} is empty: svc enterprise delete removes it`);
}

function countsOf(moves: Readonly<Record<MergedKind, number>>): string {
  const parts = MERGED_KINDS.filter((kind) => moves[kind] > 0).map((kind) => `${WORDS[kind]}: ${moves[kind]}`);
  return parts.length === 0 ? 'nothing' : parts.join(', ');
}
