import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { allowedHosts, allowsHost, parseAllowedHost, parsePlainHost } from '../../../shared/resolve/admitted_host.ts';
import { prepareHome, homeOf } from '../../up/home.ts';
import { findLauncherAbove } from '../launcher_processes.ts';
import { handle, type Call, type CommandLine } from '../../command_line.ts';
import { valueOrUsageError } from '../../command_options.ts';
import { CliError, EXIT } from '../../exit_codes.ts';
import { askLine } from '../../terminal/ask.ts';
import {
  changeFolderHosts,
  type FolderHosts,
  findListedFolder,
  hostsAllowedIn,
  plainEntry,
  quoteForShell,
  readFolderHosts,
  realFolder,
  refuseTooManyHosts,
  whyTooBroad,
} from './allowed_hosts.ts';
import { readTriedHosts, type TriedHost } from './refused_hosts.ts';

/** A longer list is not read. */
const MOST_PROPOSED = 50;

interface AllowOptions {
  readonly fromSession?: string;
  readonly plainHttp?: boolean;
  readonly remove?: boolean;
  readonly all?: boolean;
  readonly folder?: string;
  readonly allFolders?: boolean;
}

/** `svc allow`. */
export function addAllowCommand(line: CommandLine): void {
  const allow = line.program
    .command('allow')
    .description('list, allow or remove hosts for sealed sessions of this folder and those below it')
    .usage('[HOST...]')
    .argument(
      '[host...]',
      'a host, or a pattern such as *.example.com; HOST:PORT counts in sessions of every kind; without one, the list is shown',
    )
    .option('--plain-http', 'the hosts are for http:// URLs, and for sessions of every kind; never with a credential')
    .option('--from-session <session>', 'propose the hosts that a session tried, and ask which to allow')
    .option('--remove', 'remove the hosts from the list')
    .option('--all', 'with --remove: remove every host of the folder')
    .option('--folder <dir>', 'another folder than the working directory')
    .option('--all-folders', 'show the lists of all folders');
  handle<AllowOptions>(line, allow, async (call) => {
    const { fromSession, plainHttp = false, remove = false, all = false, folder, allFolders = false } = call.options;
    const { workingDirectory } = call.context;
    const home = homeOf(call.context, call.options);
    if (allFolders) {
      const given = [fromSession, folder].some((each) => each !== undefined) || call.args.length > 0;
      const others = given || plainHttp || remove || all;
      if (others) throw new CliError(EXIT.usage, '--all-folders only shows the lists: give nothing else');
      return listFolders(call, home);
    }
    const path = resolve(workingDirectory, folder ?? '.');
    const adds = fromSession !== undefined || (call.args.length > 0 && !remove);
    const found = adds ? realFolder(path) : findListedFolder(path, readFolderHosts(home));
    const place = { home, folder: found, isNamed: folder !== undefined };
    if (all && (!remove || call.args.length > 0)) {
      throw new CliError(EXIT.usage, '--all goes with --remove alone: svc allow --remove --all');
    }
    if (plainHttp && call.args.length === 0) {
      throw new CliError(EXIT.usage, '--plain-http needs a host: svc allow --plain-http HOST');
    }
    if (fromSession !== undefined) return proposeHosts(call, place, fromSession);
    const parse = plainHttp ? parsePlainHost : parseAllowedHost;
    const typed = call.args.map((text) => valueOrUsageError('the host', parse(text)));
    const named = plainHttp ? typed.map(plainEntry) : typed;
    const hosts = all ? (readFolderHosts(home)[place.folder] ?? []) : named;
    if (hosts.length > 0) return changeHosts(call, place, { hosts, remove });
    if (all) throw new CliError(EXIT.failed, `${place.folder} has no list of its own`);
    if (remove) throw new CliError(EXIT.usage, '--remove needs a host, or --all: svc allow --remove HOST');
    return listHosts(call, place);
  });
}

interface Place {
  readonly home: string;
  /** A real path. */
  readonly folder: string;
  /** True if a person named the folder, instead of being in it. */
  readonly isNamed: boolean;
}

/** A new terminal starts in the home directory, where a host would count for all projects. */
function refuseBroadFolder({ context }: Call, { folder, isNamed }: Place): void {
  const why = isNamed ? null : whyTooBroad(folder, context.userHome);
  if (why === null) return;
  throw new CliError(EXIT.failed, `nothing is allowed in ${folder} unless you name it: ${why}`, [
    'Run it in the folder of the project, or add --folder DIR.',
  ]);
}

function listFolders(call: Call, home: string): undefined {
  const items = Object.entries(readFolderHosts(home)).map(([folder, hosts]) => {
    return { folder, exists: existsSync(folder), hosts };
  });
  call.print.rows(
    { items },
    items,
    [
      { title: 'FOLDER', cell: (row) => (row.exists ? row.folder : `${row.folder} (does not exist)`) },
      { title: 'HOSTS', cell: (row) => row.hosts.join(' ') },
    ],
    'No folder has a list: svc allow HOST',
  );
}

function listHosts(call: Call, { home, folder }: Place): undefined {
  const items = hostsAllowedIn(readFolderHosts(home), folder);
  call.print.rows(
    { folder, items },
    items,
    [
      { title: 'HOST', cell: (row) => row.host },
      { title: 'FOR', cell: (row) => row.folder },
    ],
    `Sealed sessions in ${folder} reach only bound hosts and those of connectors: svc allow HOST`,
  );
}

async function changeHosts(
  call: Call,
  place: Place,
  { hosts, remove }: { readonly hosts: readonly string[]; readonly remove: boolean },
): Promise<undefined> {
  const { home, folder } = place;
  if (!remove) refuseBroadFolder(call, place);
  requireOutside(call, home);
  prepareHome(home, process.getuid?.());
  const now = await changeFolderHosts(home, (folders) => {
    const before = folders[folder] ?? [];
    const missing = hosts.find((host) => remove && !before.includes(host));
    if (missing !== undefined) throw notListed(missing, folder, folders);
    const after = remove ? before.filter((host) => !hosts.includes(host)) : [...before, ...hosts];
    if (!remove) refuseTooManyHosts({ ...folders, [folder]: after });
    return { ...folders, [folder]: after };
  });
  const done = remove ? 'no longer allowed' : 'allowed';
  call.print.data({ folder, hosts: hostsAllowedIn(now, folder).map(({ host }) => host) }, () => '');
  call.print.note(`${hosts.join(', ')}: ${done} in ${folder}, from the next session on`);
}

function notListed(missing: string, folder: string, folders: FolderHosts): CliError {
  const above = hostsAllowedIn(folders, folder).find(({ host }) => host === missing);
  const fix =
    above === undefined
      ? '`svc allow` shows the list.'
      : `It is on the list of ${above.folder}: svc allow --remove ${toWords(missing)} --folder ${quoteForShell(above.folder)}`;
  return new CliError(EXIT.failed, `${missing} is not on the list of ${folder}`, [fix]);
}

/** An entry as the command takes it. */
function toWords(entry: string): string {
  return entry.startsWith('http://') ? `--plain-http ${entry.slice('http://'.length)}` : entry;
}

/**
 * Proposes what a session tried. An agent chose these hosts, so nothing is allowed that a person at a terminal did not pick
 * from the list.
 */
async function proposeHosts(call: Call<AllowOptions>, place: Place, sessionId: string): Promise<undefined> {
  const { context, print, args, options } = call;
  if (args.length > 0 || options.remove === true) {
    throw new CliError(EXIT.usage, '--from-session proposes the hosts itself: give neither hosts nor --remove');
  }
  if (!/^ses_\w+$/.test(sessionId)) {
    throw new CliError(
      EXIT.usage,
      `--from-session is ${JSON.stringify(sessionId)}: write the id of a session (ses_...)`,
      ['`svc sessions list` shows live ones, and the last line of each run names its own.'],
    );
  }
  const patterns = hostsAllowedIn(readFolderHosts(place.home), place.folder).map(({ host }) => host);
  const allowed = allowedHosts(patterns, []);
  const { tried, complete } = await readTriedHosts(call, sessionId);
  const items = tried.filter(({ host }) => !allowsHost(allowed, host));
  const shown = items.slice(0, MOST_PROPOSED);
  print.rows(
    { session_id: sessionId, folder: place.folder, items },
    shown,
    [
      { title: '#', cell: (row) => String(shown.indexOf(row) + 1) },
      { title: 'HOST', cell: (row) => row.host },
      { title: 'REFUSED', cell: (row) => String(row.refused) },
      { title: 'PASSED', cell: (row) => String(row.passed) },
    ],
    `Session ${sessionId} tried no host that is not bound or allowed.`,
  );
  if (print.json || items.length === 0) return undefined;
  const left = items.length - shown.length;
  if (left > 0)
    print.note(
      `${left === 1 ? '1 more host is' : `${left} more hosts are`} not shown; --json lists them. Allow one by its name: svc allow HOST`,
    );
  if (!complete) print.note('The session has more events than were read: hosts that it tried early can be missing.');
  if (!context.interactive) {
    print.note('Nothing was changed: this asks at a terminal. By name: svc allow HOST');
    return undefined;
  }
  requireOutside(call, place.home);
  refuseBroadFolder(call, place);
  const answer = await askLine(context, question(place.folder, left > 0));
  const chosen = readChoice(shown, left > 0, answer);
  if (chosen.length === 0) {
    print.note('nothing was changed');
    return undefined;
  }
  return changeHosts(call, place, { hosts: chosen, remove: false });
}

function question(folder: string, isCut: boolean): string {
  const numbers = isCut ? 'Numbers such as 1,3' : 'Numbers such as 1,3, or all';
  return `The agent chose these names and how often it tried them. It can send what it knows to those that you allow.\nAllow which in ${folder}? ${numbers}; nothing: none. `;
}

/** Throws if a word is not the number of a row, so that no part of an answer is ignored. */
function readChoice(shown: readonly TriedHost[], isCut: boolean, answer: string | null): readonly string[] {
  const words = (answer ?? '')
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((word) => word !== '');
  if (words.length === 1 && words[0] === 'all' && !isCut) return shown.map(({ host }) => host);
  const unknown = words.find((word) => !/^[1-9]\d{0,4}$/.test(word) || Number(word) > shown.length);
  if (unknown === undefined)
    return shown.filter((_row, index) => words.includes(String(index + 1))).map(({ host }) => host);
  const why =
    unknown === 'all' && isCut ? 'all is not possible, because the list is cut' : 'give numbers from the list';
  throw new CliError(EXIT.failed, `${JSON.stringify(unknown)}: ${why}; nothing was changed`);
}

/**
 * Refuses a change from inside a session, where the agent would widen its own reach. In a container there is no state
 * directory; under `svc run` this stops programs that do not hide where they come from.
 */
export function requireOutside(call: Call, home: string, which = 'which may not change what it reaches'): void {
  if (!isInsideSession(call, home)) return;
  throw new CliError(EXIT.failed, `this runs inside a session, ${which}`, ['Run it in a terminal of your own.']);
}

/** True if an agent's session runs this command, as far as it can be seen. */
export function isInsideSession({ context }: Pick<Call, 'context'>, home: string): boolean {
  return context.env['SVC_SESSION_ID'] !== undefined || findLauncherAbove(home) !== null;
}
