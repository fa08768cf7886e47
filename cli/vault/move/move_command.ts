import { unlockedCall } from '../vault_unlock.ts';
import type { Command } from 'commander';
import { controlClient, findRunning } from '../../clients.ts';
import { type Call, type CommandLine, handle } from '../../command_line.ts';
import { CliError, EXIT } from '../../exit_codes.ts';
import { askOrStop, isYes } from '../../terminal/ask.ts';
import type { HttpClient } from '../../terminal/http_client.ts';
import type { Column } from '../../terminal/output.ts';
import { homeOf } from '../../up/home.ts';
import { carryOut } from './carry_out.ts';
import { type Destination, openDestination } from './destination.ts';
import { type Comparisons, type MoveItem, planMove } from './move_plan.ts';
import { listValues } from './moved_things.ts';
import { removeMoved } from './remove_moved.ts';
import { sendValues } from './send_values.ts';
import { countOfEnterprise, readContents, type VaultContents } from './vault_contents.ts';

interface MoveOptions {
  readonly to: string;
  readonly key?: string;
  readonly dryRun?: boolean;
  readonly leaveClashes?: boolean;
  readonly yes?: boolean;
  readonly remove?: boolean;
}

/** `svc vault move`. */
export function addMoveCommand(line: CommandLine, vault: Command): void {
  const move = vault
    .command('move')
    .description(
      "move your secrets, bindings, connectors and servers from this machine's vault into a hosted control plane; safe to repeat",
    )
    .requiredOption('--to <url>', 'the hosted control plane, such as https://control.example.com')
    .option('--key <key>', 'its public key, from its operator; another one is refused')
    .option('--dry-run', 'only show what would be moved, and what clashes; sends no value')
    .option('--leave-clashes', 'move the rest, if something else is there already under the same name')
    .option('--yes', 'move without a question; nothing is removed here')
    .option('--remove', 'with --yes: remove here what was checked to be there');
  handle<MoveOptions>(line, move, moveVault);
}

async function moveVault(asked: Call<MoveOptions>): Promise<number> {
  const call = await unlockedCall(asked);
  const { context, options, print } = call;
  if (options.remove === true && options.yes !== true) {
    throw new CliError(EXIT.usage, '--remove is for --yes: without it, you are asked');
  }
  if (options.dryRun !== true && options.yes !== true && !context.interactive) {
    throw new CliError(EXIT.usage, '--yes is missing: there is no terminal to ask at');
  }
  const local = localClient(call);
  const there = await openDestination(call, local);
  sayWhere(call, there);
  const here = await readContents(local);
  const plan = await planNow(call, there, here);
  sayPlan(call, plan, await countOfEnterprise(local));
  const clashes = plan.filter(({ state }) => state === 'clash');
  if (options.dryRun === true) {
    printResult(call, there, plan, []);
    return clashes.length === 0 ? EXIT.ok : EXIT.failed;
  }
  if (clashes.length > 0 && options.leaveClashes !== true) {
    throw new CliError(EXIT.failed, `nothing was moved: ${clashes.length} of your things clash with things there`, [
      'Rename or remove one of each pair, or leave those here: --leave-clashes',
    ]);
  }
  const known = new Set(plan.filter(({ state }) => state === 'new' || state === 'there').map(({ id }) => id));
  if (known.size === 0) throw new CliError(EXIT.failed, 'there is nothing to move');
  await confirm(call, `Move ${known.size} things to ${there.client.origin}?`);
  const failures = await carryOut(call, there, here, plan);
  const checked = (await planNow(call, there, here)).map((item) => withFailure(item, failures.get(item.id)));
  const isThere = checked.filter(({ id, state }) => state === 'there' && known.has(id));
  for (const item of checked.filter(({ id }) => failures.has(id))) {
    print.warn(`${nameOf(item)} was not moved: ${failures.get(item.id) ?? ''}`);
  }
  print.note(`${isThere.length} of ${known.size} things are there, each compared with what is here.`);
  const removed = await removeHere(call, local, isThere, here);
  printResult(call, there, checked, removed);
  return isThere.length === known.size ? EXIT.ok : EXIT.failed;
}

/** The control plane of this machine: never the one that the command line is signed in to. */
function localClient({ context, options }: Call): HttpClient {
  const running = findRunning(homeOf(context, options));
  if (running === null || running.control_pid === null) {
    throw new CliError(EXIT.unreachable, 'no control plane of this machine is running: its vault is what is moved', [
      'Start it with `svc up` (the same --home).',
    ]);
  }
  return controlClient(context, { ...options, control: running.control_url });
}

async function planNow(call: Call, there: Destination, here: VaultContents): Promise<readonly MoveItem[]> {
  const other = await readContents(there.client);
  const paths = new Set(other.secrets.map(({ path }) => path));
  // Only what may be there is compared: of the rest, not even a digest is sent.
  const values = listValues(here, other).filter(({ to }) => !('path' in to) || paths.has(to.path));
  const compared: Map<string, 'absent' | 'different' | 'same'> = new Map();
  for (const [key, answer] of await sendValues(call, there, 'compare', values)) {
    if (typeof answer !== 'string') throw new CliError(EXIT.failed, `a value could not be compared: ${answer.problem}`);
    compared.set(key, answer === 'stored' ? 'same' : answer);
  }
  const known: Comparisons = compared;
  return planMove(here, other, known);
}

function sayWhere({ print }: Call, { client, payload, controlPlaneKey, isNamed }: Destination): void {
  const who = payload.email ?? payload.user_id;
  print.note(`From the vault of this machine to ${client.origin}, as ${who} of ${payload.enterprise_name}.`);
  if (isNamed) return;
  print.note(
    `Its key is ${controlPlaneKey}. Who can read this machine's HTTPS could have sent another one: compare it with what its operator says, or give that with --key.`,
  );
}

function sayPlan({ print }: Call, plan: readonly MoveItem[], ofEnterprise: number): void {
  for (const item of plan.filter(({ state }) => state === 'stays'))
    print.note(`${nameOf(item)} stays: ${item.why ?? ''}`);
  for (const item of plan.filter(({ state }) => state === 'clash')) print.warn(`${nameOf(item)}: ${item.why ?? ''}`);
  if (ofEnterprise > 0) print.note(`${ofEnterprise} things that the enterprise of this machine owns stay.`);
}

const KIND_WORDS = {
  secret: 'secret',
  binding: 'binding',
  tunnel_host: 'tunnelled host',
  client_certificate: 'client certificate',
  connector: 'connector',
  mcp_server: 'MCP server',
} as const;

function nameOf({ kind, name }: MoveItem): string {
  return `${KIND_WORDS[kind]} ${name}`;
}

function withFailure(item: MoveItem, why: string | undefined): MoveItem {
  return why === undefined || item.state === 'there' ? item : { ...item, why };
}

async function confirm({ context, options }: Call<MoveOptions>, question: string): Promise<void> {
  if (options.yes === true) return;
  if (!isYes(await askOrStop(context, `${question} [y/N] `))) throw new CliError(EXIT.failed, 'nothing was moved');
}

/** Removes what was checked, after a confirmation of its own. */
async function removeHere(
  call: Call<MoveOptions>,
  local: HttpClient,
  items: readonly MoveItem[],
  checked: VaultContents,
): Promise<readonly MoveItem[]> {
  const { context, options, print } = call;
  if (items.length === 0) return [];
  if (options.yes === true && options.remove !== true) {
    print.note('Nothing was removed here. To remove what is there: the same command with --remove.');
    return [];
  }
  const question = `Remove these ${items.length} things here? Agents that use the vault of this machine lose them. [y/N] `;
  if (options.yes !== true && !isYes(await askOrStop(context, question))) {
    print.note('Nothing was removed here. The same command asks again.');
    return [];
  }
  const { removed, kept } = await removeMoved(local, items, checked, await readContents(local));
  for (const { item, why } of kept) print.warn(`${nameOf(item)} is still here too: ${why}`);
  return removed;
}

const COLUMNS: readonly Column<MoveItem & { readonly removed: boolean }>[] = [
  { title: 'KIND', cell: ({ kind }) => KIND_WORDS[kind] },
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'STATE', cell: ({ state, removed }) => (removed ? 'moved' : state) },
  { title: 'WHY', cell: ({ why }) => why ?? '' },
];

function printResult(
  { print }: Call,
  { client, payload }: Destination,
  plan: readonly MoveItem[],
  removed: readonly MoveItem[],
): void {
  const ids = new Set(removed.map(({ id }) => id));
  const items = plan.map((item) => ({ ...item, removed: ids.has(item.id) }));
  const value = { to: client.origin, user_id: payload.user_id, enterprise_id: payload.enterprise_id, items };
  print.rows(value, items, COLUMNS, 'the vault of this machine has nothing of yours');
}
