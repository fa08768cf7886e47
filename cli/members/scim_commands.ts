import { createdScimToken, type ScimTokenRecord, scimTokensPage } from '../../shared/wire/scim_tokens.ts';
import { controlClient } from '../clients.ts';
import { type Call, type CommandLine, handle } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { Column } from '../terminal/output.ts';
import { agoText } from '../terminal/relative_time.ts';

interface CreateOptions {
  readonly days?: string;
}

const PATH = '/v1/scim-tokens';

/** `svc scim ...`. */
export function addScimCommands(line: CommandLine): void {
  const scim = line.program
    .command('scim')
    .description('tokens with which a directory, such as Okta or Entra, manages members and groups (SCIM 2.0)');
  const create = scim
    .command('create')
    .description('create a token and print it once (owners)')
    .argument('<name>', 'which directory uses it, such as Okta')
    .option('--days <days>', 'days until it expires, up to 731 (default: 366)');
  handle<CreateOptions>(line, create, createToken);
  handle(line, scim.command('list').alias('ls').description('list the tokens, without their values'), listTokens);
  const revoke = scim.command('revoke').description('revoke a token permanently').argument('<id>', 'its id (sct_...)');
  handle(line, revoke, revokeToken);
}

async function createToken({ context, options, print, args }: Call<CreateOptions>): Promise<undefined> {
  const body = {
    name: args[0] ?? '',
    ...(options.days !== undefined && { expires_in_days: daysOf(options.days) }),
  };
  const created = await controlClient(context, options).call('POST', PATH, createdScimToken, { body });
  if (!print.json) {
    print.note(`${created.id}, valid until ${created.expires_at}. The directory calls ${created.base_url}.`);
    print.note('The token is shown only once:');
  }
  print.line(created, created.token);
}

function daysOf(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `--days is ${JSON.stringify(text)}: use a number of days, such as 366`);
}

async function listTokens({ context, options, print }: Call): Promise<undefined> {
  const tokens = await fetchAllPages(controlClient(context, options), PATH, scimTokensPage, {});
  const now = context.now();
  const columns: readonly Column<ScimTokenRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'STATE', cell: (token) => stateOf(token, now) },
    { title: 'LAST USED', cell: ({ last_used_at: at }) => (at === null ? 'never' : agoText(at, now)) },
  ];
  print.rows(tokens, tokens, columns, 'no SCIM tokens: an owner creates one with "svc scim create NAME"');
}

function stateOf({ revoked_at: revoked, expires_at: end }: ScimTokenRecord, now: number): string {
  if (revoked !== null) return 'revoked';
  return Date.parse(end) <= now ? 'expired' : `until ${end.slice(0, 10)}`;
}

async function revokeToken({ context, options, print, args }: Call): Promise<undefined> {
  const id = args[0] ?? '';
  await controlClient(context, options).callEmpty('DELETE', `${PATH}/${encodeURIComponent(id)}`);
  print.line({ revoked: id }, `revoked ${id}`);
}
