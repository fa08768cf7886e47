import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { readPrivateFile, writePrivateFile } from '../../../machine/state_file.ts';
import { MAX_ALLOWED_HOSTS, type AllowList } from '../../../shared/model/egress.ts';
import { parseJson } from '../../../shared/model/json.ts';
import { HTTPS_PORT, portOfHost } from '../../../shared/net/host_port.ts';
import { parseAllowedHost, parsePlainHost } from '../../../shared/resolve/admitted_host.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { CliError, EXIT } from '../../exit_codes.ts';
import { isOneOf, isRecordOf, isTextList, parseExactFields } from '../../read_fields.ts';
import { UpLock } from '../../up/up_lock.ts';

/**
 * In the state directory, which no container reaches: the hosts that a person allowed for a folder of this machine and
 * everything below it. It is never in the project's own folder, because an agent writes there (decision 0062).
 */
const FILE = 'allowed_hosts.json';

/** What an entry for plain HTTP begins with. */
const PLAIN = 'http://';

/** The entry of a host for plain HTTP: for https, and as a host of a sealed session, it counts for nothing. */
export function plainEntry(host: string): string {
  return PLAIN + host;
}

function isEntry(text: string): boolean {
  return text.startsWith(PLAIN) ? parsePlainHost(withoutPlain(text)).ok : parseAllowedHost(text).ok;
}

function withoutPlain(entry: string): string {
  return entry.startsWith(PLAIN) ? entry.slice(PLAIN.length) : entry;
}

/** Allowed hosts by the real path of their folder. An entry such as `http://HOST` is for plain HTTP alone. */
export type FolderHosts = Readonly<Record<string, readonly string[]>>;

export function readFolderHosts(home: string): FolderHosts {
  const path = join(home, FILE);
  const text = readPrivateFile(path);
  if (!text.ok) throw new CliError(EXIT.failed, text.error.message);
  if (text.value === null) return {};
  const parsed = parseFolderHosts(parseJson(text.value));
  if (parsed.ok) return parsed.value;
  throw new CliError(EXIT.failed, `${path} is damaged: ${parsed.error}`, [
    'Move it away, then allow the hosts again with: svc allow HOST',
  ]);
}

/** The content of the file, or what is wrong with it. */
function parseFolderHosts(value: unknown): Result<FolderHosts, string> {
  const read = parseExactFields<{ readonly version: 1; readonly folders: FolderHosts }>(value, {
    version: isOneOf([1]),
    folders: isRecordOf(isTextList),
  });
  if (!read.ok) return read;
  const { folders } = read.value;
  for (const [folder, entries] of Object.entries(folders)) {
    const shown = JSON.stringify(folder);
    if (!folder.startsWith('/')) return err(`folders has ${shown}, which is not an absolute path`);
    const wrong = entries.find((entry) => !isEntry(entry));
    if (wrong !== undefined) return err(`folders has ${JSON.stringify(wrong)} for ${shown}, which is not a host`);
  }
  return ok(folders);
}

/** Changes the list under a lock. */
export function changeFolderHosts(home: string, change: (before: FolderHosts) => FolderHosts): Promise<FolderHosts> {
  return changeUnderLock(home, 'allowed_hosts.lock', async () => {
    await writeFolderHosts(home, change(readFolderHosts(home)));
    return readFolderHosts(home);
  });
}

/** Changes a list of the state directory: two commands at once would each undo what the other has stored. */
export async function changeUnderLock<T>(
  home: string,
  name: string,
  change: () => Promise<T>,
  busy = new CliError(EXIT.failed, 'another command is changing the list: nothing was changed', ['Run it again.']),
): Promise<T> {
  const take = () => UpLock.take(home, process.pid, name);
  const first = take();
  const outcome = first.kind === 'stale' ? take() : first;
  if (outcome.kind !== 'taken') throw busy;
  try {
    return await change();
  } finally {
    outcome.lock.release();
  }
}

async function writeFolderHosts(home: string, folders: FolderHosts): Promise<void> {
  const kept = Object.entries(folders).filter(([, hosts]) => hosts.length > 0);
  const sorted = kept.map(([folder, hosts]) => [folder, [...new Set(hosts)].toSorted()] as const);
  const text = JSON.stringify({ version: 1, folders: Object.fromEntries(sorted) }, null, 2);
  await writePrivateFile(join(home, FILE), `${text}\n`);
}

/** What is allowed in a folder, with the folder that each is allowed for: its own entries, then those of its parents. */
export function hostsAllowedIn(
  folders: FolderHosts,
  folder: string,
): readonly { readonly host: string; readonly folder: string }[] {
  const own = (folders[folder] ?? []).map((host) => ({ host, folder }));
  const parent = dirname(folder);
  return parent === folder ? own : [...own, ...hostsAllowedIn(folders, parent)];
}

/** Refuses a change after which a session could not start, because its folder has more hosts than a session may have. */
export function refuseTooManyHosts(folders: FolderHosts): void {
  for (const folder of Object.keys(folders)) {
    const count = new Set(hostsAllowedIn(folders, folder).map(({ host }) => host)).size;
    if (count > MAX_ALLOWED_HOSTS) throw tooManyHosts(`${folder} would have`, count);
  }
}

function tooManyHosts(what: string, count: number): CliError {
  return new CliError(EXIT.failed, `${what} ${count} allowed hosts, and a session has at most ${MAX_ALLOWED_HOSTS}`, [
    'Take some away with: svc allow --remove HOST..., or all with: svc allow --remove --all',
    'One pattern such as *.example.com covers all hosts below it.',
  ]);
}

/** A path as one word of a shell's command line. */
export function quoteForShell(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** The folder without links, also one that no longer exists but has a list. */
export function findListedFolder(path: string, folders: FolderHosts): string {
  return Object.hasOwn(folders, resolve(path)) ? resolve(path) : realFolder(path);
}

/** The folder without links, so that a link in a project leads to no other project's list. */
export function realFolder(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    throw new CliError(EXIT.failed, `the folder ${JSON.stringify(path)} does not exist`);
  }
}

/**
 * Why a host should not be allowed for a folder that nobody typed: what is allowed there counts for every project below it, or for
 * folders that another user made. Null for a folder of one project.
 */
export function whyTooBroad(folder: string, userHome: string): string | null {
  const isAbove = (path: string): boolean => path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`);
  if (isAbove(existingFolder(userHome))) return 'every project of yours is below it';
  // As /tmp is. A project folder that a container's user may write to has no sticky bit.
  const isShared = (statSync(folder).mode & 0o1002) === 0o1002;
  return isShared ? 'every user of this machine can make folders in it' : null;
}

function existingFolder(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

/** The allow list of a new session: what was typed for it, what the folder has, and more hosts, such as an agent's own. */
export function allowListFor(
  { more = [], ...place }: ListPlace & { readonly more?: readonly string[] },
  typed: readonly string[],
): AllowList {
  const stored = listStored(place).filter((entry) => !entry.startsWith(PLAIN));
  return splitTyped(typed, [...stored, ...more]);
}

/** The state directory, and the folder that a session starts in. */
export interface ListPlace {
  readonly home: string;
  readonly folder: string;
}

/**
 * The hosts at other ports than 443, of a new session that reaches every host on port 443: what was typed for it, and what the
 * folder has. Undefined if there are none.
 */
export function otherPortsFor(place: ListPlace, typed: readonly string[]): AllowList | undefined {
  const list = splitTyped(typed.filter(hasOtherPort), listStored(place).filter(hasOtherPort));
  return list.hosts.length + list.named.length === 0 ? undefined : list;
}

function hasOtherPort(entry: string): boolean {
  return !entry.startsWith(PLAIN) && portOfHost(entry) !== HTTPS_PORT;
}

/** The fields of `POST /v1/sandbox-proxy/sessions`. An older sidecar refuses them, and does not run the session without its list. */
export function otherPortsFields(list: AllowList | undefined): object {
  return list === undefined ? {} : { other_port_hosts: list.hosts, other_port_named: list.named };
}

/** The hosts that the folder's list has for plain HTTP. */
export function listPlainHttpHosts(place: ListPlace): readonly string[] {
  return listStored(place)
    .filter((entry) => entry.startsWith(PLAIN))
    .map(withoutPlain);
}

function listStored({ home, folder }: ListPlace): readonly string[] {
  return hostsAllowedIn(readFolderHosts(home), realFolder(folder)).map(({ host }) => host);
}

/** Exact hosts that were typed are named; all other ones are only allowed. */
export function splitTyped(typed: readonly string[], others: readonly string[]): AllowList {
  const named = typed.filter((pattern) => !pattern.includes('*'));
  const hosts = [...typed, ...others].filter((host) => !named.includes(host));
  const list = { hosts: [...new Set(hosts)], named: [...new Set(named)] };
  if (list.hosts.length > MAX_ALLOWED_HOSTS) throw tooManyHosts('the session would have', list.hosts.length);
  return list;
}

/** The fields of `POST /v1/sandbox-proxy/sessions`. An older sidecar refuses them, and does not run the session without its list. */
export function allowListFields({ hosts, named }: AllowList): object {
  return { allowed_hosts: hosts, named_hosts: named };
}
