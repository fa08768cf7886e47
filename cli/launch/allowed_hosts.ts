import { realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';
import { MAX_ALLOWED_HOSTS, type AllowList } from '../../shared/model/egress.ts';
import { parseJson } from '../../shared/model/json.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { formatHostPattern, parseHostPattern } from '../../shared/net/host_pattern.ts';
import { isRefusedIpLiteral } from '../../shared/net/ip_literal.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/**
 * In the state directory, which no container reaches: the hosts that a person allowed for a folder of this machine and
 * everything below it. It is never in the project's own folder, because an agent writes there (decision 0062).
 */
const FILE = 'allowed_hosts.json';

const content = z.strictObject({
  version: z.literal(1),
  folders: z.record(
    z.string().startsWith('/'),
    z.array(z.string().refine((text) => parseAllowedHost(text).ok, 'is not a host')),
  ),
});

/** Allowed hosts by the real path of their folder. */
type FolderHosts = Readonly<Record<string, readonly string[]>>;

/** A host or a pattern such as `*.example.com`, in canonical form. */
export function parseAllowedHost(text: string): Result<string, string> {
  const pattern = parseHostPattern(text);
  if (!pattern.ok) return err(`is ${JSON.stringify(text)}, which ${pattern.error.message}`);
  const host = formatHostPattern(pattern.value);
  if (!isRefusedIpLiteral(host)) return ok(host);
  return err(`is ${host}, a private address, which no request without a credential reaches: give a host name`);
}

export function readFolderHosts(home: string): FolderHosts {
  const path = join(home, FILE);
  const text = readPrivateFile(path);
  if (!text.ok) throw new CliError(EXIT.failed, text.error.message);
  if (text.value === null) return {};
  const parsed = content.safeParse(parseJson(text.value));
  if (parsed.success) return parsed.data.folders;
  const [issue] = parsed.error.issues;
  throw new CliError(EXIT.failed, `${path} is damaged: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`, [
    'Move it away, then allow the hosts again with: svc allow HOST',
  ]);
}

export async function writeFolderHosts(home: string, folders: FolderHosts): Promise<void> {
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

/** The allow list of a new session: what was typed for it, what the folder has, and more hosts, such as an agent's own. */
export function allowListFor(
  { home, folder, more = [] }: { readonly home: string; readonly folder: string; readonly more?: readonly string[] },
  typed: readonly string[],
): AllowList {
  const stored = hostsAllowedIn(readFolderHosts(home), realFolder(folder)).map(({ host }) => host);
  const named = typed.filter((pattern) => !pattern.includes('*'));
  const hosts = [...typed, ...stored, ...more].filter((host) => !named.includes(host));
  const list = { hosts: [...new Set(hosts)], named: [...new Set(named)] };
  if (list.hosts.length > MAX_ALLOWED_HOSTS) throw tooManyHosts('the session would have', list.hosts.length);
  return list;
}

/** The fields of `POST /v1/sandbox-proxy/sessions`. An older sidecar refuses them, and does not run the session without its list. */
export function allowListFields({ hosts, named }: AllowList): object {
  return { allowed_hosts: hosts, named_hosts: named };
}
