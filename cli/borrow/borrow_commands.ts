import { type Command, Option } from 'commander';
import { type BorrowedItem, borrowedList, borrowedTestReply } from '../../shared/borrow/borrow_calls.ts';
import { EFFECTS, INJECTION_SCHEMES } from '../../shared/model/host_binding.ts';
import { sidecarClient } from '../clients.ts';
import { type Call, collectValue, type CommandLine, handle } from '../command_line.ts';
import { type OwnerOption, ownerOption } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { commandText } from '../terminal/cell_text.ts';
import { addBorrowed, type BorrowAddOptions } from './borrow_add.ts';
import { RECIPES } from './recipes.ts';
import { grantView, problemText } from './borrow_view.ts';

const PATH = 'path in the vault, such as user/github';

/** `svc secret borrow ...`. */
export function addBorrowCommands(line: CommandLine, secret: Command): void {
  const borrow = secret
    .command('borrow')
    .description('secrets whose value a program on this machine gives, by consent here');
  addAddCommand(line, borrow);
  const list = borrow
    .command('list')
    .alias('ls')
    .description('list what was consented to on this machine, and what is held');
  handle(line, list, listBorrowed);
  const show = placeCommand(borrow, 'show', 'show one consent of this machine in full');
  handle<OwnerOption>(line, show, showBorrowed);
  const test = placeCommand(borrow, 'test', 'run the program and discard its value: shows until when it would be used');
  handle<OwnerOption>(line, test, testBorrowed);
  const remove = placeCommand(
    borrow,
    'rm',
    'withdraw the consent on this machine; delete the record with svc secret rm',
  );
  handle<OwnerOption>(line, remove, withdrawBorrowed);
}

function addAddCommand(line: CommandLine, borrow: Command): void {
  const add = borrow
    .command('add')
    .description('consent to a program that gives the value at a path, for some hosts only')
    .usage('[options] <path> -- PROGRAM [ARGUMENT...]')
    .argument('<path>', PATH)
    .argument('[command...]', 'the program and its arguments, after --; no shell is started')
    .option('--host <host>', 'a host that may get the value, as in a binding (repeatable)', collectValue)
    .addOption(new Option('--scheme <scheme>', 'the scheme of the bindings that may use it').choices(INJECTION_SCHEMES))
    .option(
      '--header <name>',
      'the header of the binding, for header-template; x-amz-security-token for a session token of sigv4-resign',
    )
    .option('--query-param <name>', 'the query parameter of the binding, for query-param')
    .addOption(
      new Option('--effect <effect>', 'read: only for bindings with that effect').choices(EFFECTS).default('read'),
    )
    .option(
      '--env <name=value>',
      'a variable for the program, which gets none of this terminal (repeatable)',
      collectValue,
    )
    .option('--json-value <field>', 'the output is JSON, and this field is the value, such as credential.access_token')
    .option('--json-expires <field>', 'the field with its end: a time, seconds since 1970, or seconds from now')
    .option('--recipe <name>', `a CLI that svc knows; after -- only which value: ${Object.keys(RECIPES).join(', ')}`)
    .option('--aws', 'the output is a key set of AWS, as a credential_process writes it')
    .option('-y, --yes', 'consent without a question')
    .addOption(ownerOption('owner of the secret').default('personal'));
  handle<BorrowAddOptions>(line, add, addBorrowed);
}

function placeCommand(borrow: Command, name: string, description: string): Command {
  return borrow
    .command(name)
    .description(description)
    .argument('<path>', PATH)
    .addOption(ownerOption('owner of the secret').default('personal'));
}

function placeOf({ args, options }: Call<OwnerOption>) {
  return { path: (args[0] ?? '').replace(/^vault:\/\//, ''), owner: options.owner };
}

async function fetchConsents({ context, options }: Call): Promise<readonly BorrowedItem[]> {
  return (await sidecarClient(context, options).call('GET', '/v1/borrowed-secrets', borrowedList)).items;
}

async function listBorrowed(call: Call): Promise<undefined> {
  const items = await fetchConsents(call);
  const columns = [
    { title: 'REFERENCE', cell: ({ grant }: BorrowedItem) => `vault://${grant.path}` },
    { title: 'OWNER', cell: ({ grant }: BorrowedItem) => grant.owner },
    { title: 'RUNS', cell: ({ grant }: BorrowedItem) => commandText([grant.program, ...grant.args]) },
    { title: 'HOSTS', cell: ({ grant }: BorrowedItem) => grant.hosts.join(', ') },
    { title: 'VALUE UNTIL', cell: (item: BorrowedItem) => item.held_until ?? '-' },
    { title: 'PROBLEM', cell: (item: BorrowedItem) => problemText(item) ?? '' },
  ];
  const empty = 'Nothing is borrowed on this machine yet: svc secret borrow add --help';
  call.print.rows({ items }, [...items], columns, empty);
}

async function showBorrowed(call: Call<OwnerOption>): Promise<undefined> {
  const { path, owner } = placeOf(call);
  const found = (await fetchConsents(call)).find(({ grant }) => grant.path === path && grant.owner === owner);
  if (found === undefined) throw noConsentError(path);
  const { paint } = call.print;
  const value = found.held_until === null ? 'none is held now' : `held until ${found.held_until}`;
  const about = [`consented ${found.consented_at}`, `value      ${value}`, ...problemLines(found)];
  call.print.data(found, () => `${grantView(found.grant, null, paint)}${about.map((text) => `  ${text}\n`).join('')}`);
}

function problemLines(item: BorrowedItem): readonly string[] {
  const text = problemText(item);
  return text === null ? [] : [`problem    ${text}`];
}

async function testBorrowed(call: Call<OwnerOption>): Promise<undefined> {
  const body = placeOf(call);
  const client = sidecarClient(call.context, call.options);
  const tested = await client.call('POST', '/v1/borrowed-secrets/test', borrowedTestReply, { body });
  const what = tested.key_set ? 'a key set' : 'a value';
  const end = tested.states_end ? `until ${tested.until}` : `without an end of its own, used until ${tested.until}`;
  call.print.data(tested, () => `${what} ${end}; it was discarded\n`);
}

async function withdrawBorrowed(call: Call<OwnerOption>): Promise<undefined> {
  const body = placeOf(call);
  await sidecarClient(call.context, call.options).callEmpty('POST', '/v1/borrowed-secrets/withdraw', { body });
  if (call.print.person || call.print.json) {
    call.print.data({ withdrawn: body.path }, () => `vault://${body.path} is not borrowed on this machine any more\n`);
  }
}

function noConsentError(path: string): CliError {
  return new CliError(EXIT.failed, `nobody on this machine has consented to borrow vault://${path}`, [
    'List what was consented to: svc secret borrow list',
  ]);
}
