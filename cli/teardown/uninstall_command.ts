import { existsSync, lstatSync, readdirSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
import { join, parse, relative, resolve } from 'node:path';
import { HOME_LABEL, homeLabelOf } from '../../sandbox/engine/container_labels.ts';
import { listHomes } from '../agents/agent_homes.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readSignIn } from '../sign_in/sign_in_file.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { askLine } from '../terminal/ask.ts';
import { homeOf } from '../up/home.ts';
import { findInstalledService } from '../service/service_commands.ts';
import { UpLock } from '../up/up_lock.ts';
import { counted } from '../../shared/model/sentence.ts';

interface UninstallOptions {
  readonly yes?: boolean;
}

/** `svc uninstall`. */
export function addUninstallCommand(line: CommandLine): void {
  const uninstall = line.program
    .command('uninstall')
    .description('delete the state directory with everything stored in it, and say what else belongs to svc')
    .option('--yes', 'do not ask');
  handle<UninstallOptions>(line, uninstall, removeState);
}

async function removeState(call: Call<UninstallOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  await requireConsent(call, home, requireUnused(call, home));
  const problems: string[] = [];
  const volumes = (await listHomes(context.env, home, (problem) => problems.push(problem))).map(({ name }) => name);
  for (const problem of problems) print.warn(problem);
  const label = problems.length === 0 ? null : `${HOME_LABEL}=${homeLabelOf(home)}`;
  // The question may have been open for long: svc may have been started since.
  const names = requireUnused(call, home);
  const kept = names.filter((name) => !isOwnName(name));
  for (const name of names) if (isOwnName(name)) rmSync(join(home, name), { recursive: true, force: true });
  if (kept.length === 0) rmdirSync(home);
  print.data(kept.length === 0 ? { deleted: home } : { deleted: home, kept }, () =>
    kept.length === 0 ? `deleted ${home}\n` : `deleted what svc keeps in ${home}\n`,
  );
  if (kept.length > 0) print.warn(toPrintable(`${home} stays, because svc did not make this: ${kept.join(', ')}`));
  print.note('Not deleted, because svc did not put it there or you may still need it:');
  for (const text of listLeft(context.root, volumes, label)) print.note(`  ${text}`);
}

/** The names in the state directory. Throws if something uses it: nothing is stopped, signed out or removed for that. */
function requireUnused(call: Call<UninstallOptions>, home: string): readonly string[] {
  const { context } = call;
  const names = requireState(home, [context.userHome, context.workingDirectory, context.root]);
  if (UpLock.readRunning(home) !== null) {
    throw new CliError(EXIT.failed, `svc is running on ${home}: nothing was deleted`, ['Stop it first: svc down']);
  }
  if (readSignIn(home) !== null) {
    throw new CliError(EXIT.failed, `${home} is signed in to a control plane: nothing was deleted`, [
      'Sign out first, which also revokes this machine: svc logout',
    ]);
  }
  const service = findInstalledService(call);
  if (service !== null) {
    throw new CliError(EXIT.failed, `svc is installed as a service (${service}): nothing was deleted`, [
      'It would start svc again on an empty state directory. Remove it first: svc service uninstall',
    ]);
  }
  return names;
}

/** Every state directory has one of these files. A folder called `sidecar` alone may be part of a program's source. */
const MARKS = ['local.key', 'control.db', join('sidecar', 'identity.json'), join('sidecar', 'host.token')];

const OWN_NAMES = [
  'agents',
  'logs',
  'mcp',
  'runs',
  'sandboxes',
  'sessions',
  'sidecar',
  'local.key',
  'vault.key',
  'vault.key.change',
  'control.db',
  'agent_homes.json',
  'agent_images.json',
  'allowed_hosts.json',
  'image_checks.json',
  'mcp_clients.json',
  'run.json',
  'sign_in.json',
  'trusted_folders.json',
  'trusted_secrets.json',
  'allowed_hosts.lock',
  'import.lock',
  'sign_in.lock',
  'trusted_folders.lock',
  'up.lock',
];
/** What a database adds to its name, and what an atomic write and a lock add to theirs. */
const SUFFIX = /^(?:-wal|-shm|-journal|\.next|(?:\.stale)?\.\d+|\.[0-9a-f]{12}\.tmp)?$/;

/** Whether svc makes something of this name in a state directory. */
function isOwnName(name: string): boolean {
  return OWN_NAMES.some((own) => name.startsWith(own) && SUFFIX.test(name.slice(own.length)));
}

/** The names in the state directory. Throws unless the directory is one, so that a mistyped --home deletes nothing else. */
function requireState(home: string, kept: readonly string[]): readonly string[] {
  const stats = lstatSync(home, { throwIfNoEntry: false });
  if (stats === undefined) throw new CliError(EXIT.failed, `${home} does not exist: nothing was deleted`);
  const names = stats.isDirectory() ? readdirSync(home) : [];
  const hasFile = (mark: string): boolean => lstatSync(join(home, mark), { throwIfNoEntry: false })?.isFile() === true;
  const isState = stats.isDirectory() && MARKS.some(hasFile);
  const isAbove = kept.some((path) => isInside(realPath(home), realPath(path))) || resolve(home) === parse(home).root;
  const isOwn = process.getuid === undefined || stats.uid === process.getuid();
  if (isState && !isAbove && isOwn) return names;
  throw new CliError(EXIT.failed, `${home} is not a state directory of yours: nothing was deleted`, [
    'Name the right one with --home DIR.',
  ]);
}

/** The path without links, so that two paths of one folder are the same. */
function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path);
}

/** True if the path is the folder or below it. */
function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === '' || (!way.startsWith('..') && resolve(folder, way) === resolve(path));
}

/** The whole word is typed: what is deleted cannot be brought back. */
async function requireConsent(
  { context, options, print }: Call<UninstallOptions>,
  home: string,
  names: readonly string[],
): Promise<void> {
  if (options.yes === true) return;
  if (!context.interactive) {
    throw new CliError(EXIT.usage, `this deletes ${home} with every stored secret: nothing was deleted`, [
      'To delete it without a question: --yes',
    ]);
  }
  print.note(
    `This deletes ${home} (${counted(names.length, 'entry', 'entries')}): the vault with every stored secret, the audit log and all keys.`,
  );
  print.note(
    `To keep a copy of what can be exported, without secrets: svc export. Of the database: svc db backup FILE.`,
  );
  const answer = await askLine(context, 'Type "delete" to go on: ');
  if (answer?.trim() !== 'delete') throw new CliError(EXIT.failed, 'nothing was deleted');
}

/** `unknown` is the label of homes at engines that did not answer; null if all did. */
function listLeft(root: string, volumes: readonly string[], unknown: string | null): readonly string[] {
  const homes = `homes of agents in containers: docker volume rm ${volumes.join(' ')}`;
  return [
    ...(volumes.length === 0 ? [] : [homes]),
    ...(unknown === null
      ? []
      : [`homes of agents at an engine that did not answer: docker volume ls --filter label=${unknown}`]),
    `${root}: this checkout, and a link to its bin/svc on your PATH (npm unlink --global)`,
    'images that svc image build and svc launch have made: docker image ls',
    'placeholders that svc seal and svc login have written into your files and those of agents; they are no secrets',
    'completion scripts, and MCP clients that start `svc mcp gateway`',
  ];
}
