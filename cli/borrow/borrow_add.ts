import type { z } from 'zod';
import { checkCommand } from '../../machine/borrow/check_files.ts';
import { sha256Hex } from '../../machine/sha256.ts';
import { borrowedList, borrowGrant } from '../../shared/borrow/borrow_calls.ts';
import {
  type BorrowedForm,
  type BorrowGrant,
  grantText,
  SESSION_TOKEN_HEADER,
} from '../../shared/borrow/borrow_grant.ts';
import { BORROWED_KIND } from '../../shared/model/source_kind.ts';
import { fetchSources } from '../bindings/fetch_sources.ts';
import { sourceRecord } from '../../shared/wire/secret_sources.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import { controlClient, sidecarClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import type { OwnerOption } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askYes } from '../terminal/ask.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import { grantView } from './borrow_view.ts';
import { commandOf } from './recipes.ts';
import { programPath, requireAbsoluteFiles } from './program_path.ts';

export interface BorrowAddOptions extends OwnerOption {
  readonly host?: readonly string[];
  readonly scheme?: string;
  readonly header?: string;
  readonly queryParam?: string;
  readonly effect?: string;
  readonly env?: readonly string[];
  readonly jsonValue?: string;
  readonly jsonExpires?: string;
  readonly aws?: boolean;
  readonly recipe?: string;
  readonly yes?: boolean;
}

/** `svc secret borrow add PATH ... -- PROGRAM [ARGUMENT...]`. */
export async function addBorrowed(call: Call<BorrowAddOptions>): Promise<number | undefined> {
  const { context, options, print } = call;
  const grant = await readGrant(call);
  const sidecar = sidecarClient(context, options);
  const { items } = await sidecar.call('GET', '/v1/borrowed-secrets', borrowedList);
  const known = items.find((item) => item.grant.owner === grant.owner && item.grant.path === grant.path);
  const hash = sha256Hex(grantText(grant));
  const isNew = known?.hash !== hash;
  if (isNew && options.yes !== true) {
    const view = grantView(grant, known?.grant ?? null, print.paint);
    if (!context.interactive || print.json) {
      print.data({ consented: false, hash, grant }, () => view);
      print.note('svc: stdin is not a terminal: run this at a terminal, or use --yes');
      return EXIT.failed;
    }
    print.raw(`${view}\n`);
    if (
      !(await askYes(context, 'Let svc run this on this machine with your rights, and send its value to these hosts?'))
    ) {
      print.note('no consent given');
      return EXIT.failed;
    }
  }
  await storeRecord(call, grant);
  if (isNew) await sidecar.callEmpty('POST', '/v1/borrowed-secrets', { body: { grant, hash } });
  const ref = `vault://${grant.path}`;
  const next = `try it with: svc secret borrow test ${grant.path}`;
  print.data({ consented: true, ref, hash, grant }, () =>
    print.person ? `${ref} is borrowed from now on; ${next}\n` : `${ref}\n`,
  );
  return undefined;
}

async function readGrant(call: Call<BorrowAddOptions>): Promise<BorrowGrant> {
  const { context, options, args } = call;
  const [path = '', ...rest] = args;
  const { command, output } = commandOf(options.recipe, rest);
  const [typed, ...words] = command;
  if (typed === undefined) {
    throw new CliError(EXIT.usage, 'there is no program: write it after --', [
      'svc secret borrow add user/github --host api.github.com --scheme bearer -- gh auth token',
    ]);
  }
  if (options.host === undefined)
    throw new CliError(EXIT.usage, '--host is missing: name each host that may get the value');
  if (options.scheme === undefined) throw new CliError(EXIT.usage, '--scheme is missing: give that of the binding');
  const program = programPath(context, typed);
  requireAbsoluteFiles(context, words);
  const files = await checkCommand(program, words, { uid: process.getuid?.() ?? 0 });
  if (!files.ok) throw new CliError(EXIT.failed, files.error);
  const read = borrowGrant.safeParse({
    owner: options.owner,
    path: path.replace(/^vault:\/\//, ''),
    program,
    args: words,
    env: Object.fromEntries((options.env ?? []).map((text) => readVariable(text))),
    output: formOf(options) ?? output,
    files: files.value,
    hosts: options.host,
    scheme: options.scheme,
    ...placeField(options),
    effect: options.effect ?? 'read',
  });
  if (read.success) return read.data;
  throw new CliError(EXIT.usage, grantProblem(read.error));
}

const OPTION_OF: Readonly<Record<string, string>> = {
  path: 'the path',
  hosts: '--host',
  scheme: '--scheme',
  place: '--header or --query-param',
  effect: '--effect',
  env: '--env',
  output: 'the field of --json-value or --json-expires',
};

function grantProblem(error: z.ZodError): string {
  const [issue] = error.issues;
  const [field = '', detail] = (issue?.path ?? []).map(String);
  const name = OPTION_OF[field] ?? field;
  return `${name}${field === 'env' && detail !== undefined ? ` ${detail}` : ''} ${issue?.message ?? 'is not valid'}`;
}

/** A value that may go into any header could go into one that the host shows to others. */
function placeField({ scheme, header, queryParam: param }: BorrowAddOptions): { readonly place?: string } {
  const place = header?.toLowerCase() ?? param;
  const isToken = scheme === 'sigv4-resign' && place === SESSION_TOKEN_HEADER;
  if (header !== undefined && scheme !== 'header-template' && !isToken) throw useless('--header', 'header-template');
  if (param !== undefined && scheme !== 'query-param') throw useless('--query-param', 'query-param');
  if (place !== undefined) return { place };
  if (scheme === 'header-template') throw missingPlace('--header', scheme);
  if (scheme === 'query-param') throw missingPlace('--query-param', scheme);
  return {};
}

function useless(option: string, scheme: string): CliError {
  return new CliError(EXIT.usage, `${option} is for --scheme ${scheme}: the other schemes say where the value goes`);
}

function missingPlace(option: string, scheme: string): CliError {
  return new CliError(EXIT.usage, `${option} is missing: name the one of the binding, because ${scheme} has any`);
}

function readVariable(text: string): [string, string] {
  const end = text.indexOf('=');
  if (end > 0) return [text.slice(0, end), text.slice(end + 1)];
  throw new CliError(EXIT.usage, '--env needs NAME=VALUE: the program gets no variable of this terminal');
}

function formOf({ aws, jsonValue, jsonExpires }: BorrowAddOptions): BorrowedForm | null {
  if (aws === true && jsonValue !== undefined) throw new CliError(EXIT.usage, 'give either --aws or --json-value');
  if (aws === true) return { form: 'aws' };
  if (jsonValue !== undefined)
    return { form: 'json', value: jsonValue, ...(jsonExpires !== undefined && { expires: jsonExpires }) };
  if (jsonExpires === undefined) return null;
  throw new CliError(EXIT.usage, '--json-expires needs --json-value: name the field that has the value');
}

/** The record in the control plane has no more than the path. A value that is stored there is not replaced silently. */
async function storeRecord({ context, options }: Call<BorrowAddOptions>, { owner, path }: BorrowGrant): Promise<void> {
  const client = controlClient(context, options);
  const source = (await fetchSources(client, owner)).find((item) => item.path === path && item.owner === owner);
  if (source?.source.kind === BORROWED_KIND) return;
  const secrets = await fetchAllPages(client, '/v1/secrets', secretsPage, { owner });
  if (secrets.some((secret) => secret.path === path && secret.owner === owner)) {
    const what = source === undefined ? 'has a stored value' : `is minted (${source.source.kind})`;
    throw new CliError(EXIT.failed, `vault://${path} ${what}, which this would delete`, [
      `Choose another path, or delete it first: svc secret rm ${path}`,
    ]);
  }
  const body = { path, owner, source: { kind: BORROWED_KIND } };
  await client.call('POST', '/v1/secret-sources', sourceRecord, { body });
}
