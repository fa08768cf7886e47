import { createdToken, SCOPES, tokensPage, type TokenRecord } from '../../shared/wire/tokens.ts';
import { controlClient } from '../clients.ts';
import { handle, collectValue, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import type { Column } from '../terminal/output.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { agoText } from '../terminal/relative_time.ts';

interface CreateOptions {
  readonly scope?: readonly string[];
  readonly days?: string;
}

/** `svc token ...`. */
export function addTokenCommands(line: CommandLine): void {
  const token = line.program
    .command('token')
    .description('manage personal tokens for programs that call the control API');
  const create = token
    .command('create')
    .description('create a token and print it once')
    .argument('<name>', 'what it is for')
    .option('--scope <scope>', `permission of the token (repeatable): ${SCOPES.join(', ')}`, collectValue)
    .option('--days <days>', 'days until it expires, up to 366 (default: 90)');
  handle<CreateOptions>(line, create, createToken);
  handle(line, token.command('list').alias('ls').description('list tokens, without their values'), listTokens);
  const revoke = token.command('revoke').description('revoke a token permanently').argument('<id>', 'its id (tok_...)');
  handle(line, revoke, revokeToken);
}

async function createToken(call: Call<CreateOptions>): Promise<undefined> {
  const { options, print } = call;
  if (options.scope === undefined) {
    throw new CliError(EXIT.usage, '--scope is missing: give the permissions of the token', [
      `One or more of: ${SCOPES.join(', ')}`,
    ]);
  }
  const unknown = options.scope.find((scope) => !SCOPES.some((known) => known === scope));
  if (unknown !== undefined) {
    throw new CliError(EXIT.usage, `--scope is ${JSON.stringify(unknown)}, which is no permission of a token`, [
      `One or more of: ${SCOPES.join(', ')}`,
    ]);
  }
  const body = {
    name: call.args[0] ?? '',
    scopes: options.scope,
    ...(options.days !== undefined && { expires_in_days: daysOf(options.days) }),
  };
  const client = controlClient(call.context, options);
  const created = await client.call('POST', '/v1/tokens', createdToken, { body });
  if (!print.json) print.note(`${created.id}, valid until ${created.expires_at}. The token is shown only once:`);
  print.line(created, created.token);
}

function daysOf(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `--days is ${JSON.stringify(text)}: use a number of days, such as 30`);
}

async function listTokens(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const tokens = await fetchAllPages(controlClient(context, options), '/v1/tokens', tokensPage, {});
  const now = context.now();
  const columns: readonly Column<TokenRecord>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'NAME', cell: ({ name }) => name },
    { title: 'SCOPES', cell: ({ scopes }) => scopes.join(' ') },
    { title: 'STATE', cell: (token) => stateOf(token, now) },
    { title: 'LAST USED', cell: ({ last_used_at: at }) => (at === null ? 'never' : agoText(at, now)) },
  ];
  print.rows(tokens, tokens, columns, 'no tokens: create one with "svc token create NAME --scope SCOPE"');
}

function stateOf({ revoked_at: revoked, expires_at: end }: TokenRecord, now: number): string {
  if (revoked !== null) return 'revoked';
  return Date.parse(end) <= now ? 'expired' : `until ${end.slice(0, 10)}`;
}

async function revokeToken(call: Call): Promise<undefined> {
  const id = call.args[0] ?? '';
  await controlClient(call.context, call.options).callEmpty('DELETE', `/v1/tokens/${encodeURIComponent(id)}`);
  call.print.line({ revoked: id }, `revoked ${id}`);
}
