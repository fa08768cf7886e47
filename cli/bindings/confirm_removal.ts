import type { Command } from 'commander';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { removalPreview, type RemovalPreview, type RemovalUse } from '../../shared/wire/removals.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askYes } from '../terminal/ask.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { agoText } from '../terminal/relative_time.ts';

export interface RemovalOptions {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

/** The options of a command that deletes something which others may use. */
export function withRemovalOptions(command: Command): Command {
  return command
    .option('--dry-run', 'only show what uses it and what would stop working')
    .option('-y, --yes', 'do not ask (without a terminal, nothing is asked)');
}

interface Place {
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
}

/**
 * Shows what deleting something would do, and asks a person at a terminal. False if nothing is to be deleted (`--dry-run`).
 * Throws `CliError` if the person does not confirm, or if it is in use.
 */
export async function confirmRemoval(call: Call<RemovalOptions>, client: HttpClient, place: Place): Promise<boolean> {
  const { context, options, print } = call;
  const asks = context.interactive && !print.json && options.yes !== true;
  if (!asks && options.dryRun !== true) return true;
  const query = place.query ?? {};
  const preview = await client.call('GET', `${place.path}/deletion`, removalPreview, { query });
  const text = describe(preview, context.now());
  if (options.dryRun === true) {
    print.data(preview, () => `${text}\n`);
    return false;
  }
  print.note(text);
  if (!preview.allowed) {
    throw new CliError(EXIT.failed, `${preview.name} is in use: nothing was deleted`, [
      'Change or delete first what uses it.',
    ]);
  }
  if (await askYes(context, `Delete ${preview.name}?`)) return true;
  throw new CliError(EXIT.failed, 'nothing was deleted');
}

const KINDS: { readonly [K in RemovalPreview['kind'] | RemovalUse['kind']]: string } = {
  client_certificate: 'client certificate',
  secret: 'secret',
  binding: 'binding',
  connector: 'connector',
  mcp_server: 'MCP server',
};

function describe({ kind, name, allowed, effects, last_used_at: lastUsed }: RemovalPreview, now: number): string {
  const verb = allowed ? 'Deleting' : 'In use:';
  return [
    `${verb} the ${KINDS[kind]} ${toPrintable(name)}${allowed ? ':' : ''}`,
    ...effects.flatMap(({ text, uses, names }) => [
      `- ${toPrintable(text)}`,
      ...uses.map((use) => `    ${useText(use)}`),
      ...names.map((each) => `    ${toPrintable(each)}`),
    ]),
    ...(lastUsed === null ? [] : [`Last used ${agoText(lastUsed, now)}.`]),
  ].join('\n');
}

function useText({ kind, name }: RemovalUse): string {
  return `${toPrintable(name)}  ${KINDS[kind]}`;
}
