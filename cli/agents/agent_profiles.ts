import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { mayBeCredential } from '../../shared/model/credential_shapes.ts';
import { readRegularFile } from '../../machine/regular_file.ts';
import { nearMatch } from '../../shared/model/near_match.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { modeText } from '../up/home.ts';
import { AGENT_TITLES } from './agent_names.ts';
import { parseAgentProfile, type AgentProfile } from './agent_profile.ts';
import { listOwnNames, ownFolder } from './own_names.ts';

const MAX_PROFILE_BYTES = 64 * 1024;

/** Where profiles are: the checkout, and the state directory with the user's own. */
export interface ProfilePlaces {
  readonly root: string;
  readonly home: string;
  readonly uid: number | undefined;
}

/** A profile and the file that it was read from. */
export interface FoundProfile {
  readonly profile: AgentProfile;
  readonly file: string;
  /** Written by the user, not part of svc. */
  readonly own: boolean;
}

/** Finds a profile by name; the error suggests the nearest name. */
export function findProfile(places: ProfilePlaces, name: string): FoundProfile {
  if (Object.hasOwn(AGENT_TITLES, name)) return readCatalogProfile(places.root, name);
  const own = listOwnNames(places.home);
  if (own.includes(name)) return readOwnProfile(places, name);
  if (mayBeCredential(name)) {
    throw new CliError(EXIT.usage, 'there is no agent of this name', [
      'If it is a credential, treat it as exposed: replace it at the service that issued it.',
      '`svc agents` lists the agents.',
    ]);
  }
  const near = nearMatch(name, [...Object.keys(AGENT_TITLES), ...own]);
  throw new CliError(EXIT.usage, `there is no agent ${JSON.stringify(name)}`, [
    ...(near === null ? [] : [`Did you mean ${near}?`]),
    '`svc agents` lists them.',
  ]);
}

/** All profiles that can be used; `onProblem` receives what is wrong with each of the user's own that cannot. */
export function loadProfiles(places: ProfilePlaces, onProblem: (problem: CliError) => void): readonly FoundProfile[] {
  const catalog = Object.keys(AGENT_TITLES).map((name) => readCatalogProfile(places.root, name));
  const own = listOwnNames(places.home).flatMap((name) => {
    try {
      return [readOwnProfile(places, name)];
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      onProblem(error);
      return [];
    }
  });
  return [...catalog, ...own];
}

function readCatalogProfile(root: string, name: string): FoundProfile {
  const file = join(root, 'catalog', 'agents', `${name}.yaml`);
  const checked = parseAgentProfile(parse(readFileSync(file, 'utf8')));
  if (checked.ok) return { profile: checked.value, file, own: false };
  throw new CliError(EXIT.failed, `${file} is damaged: ${checked.error.join('; ')}`, ['Get a complete checkout.']);
}

function readOwnProfile({ home, uid }: ProfilePlaces, name: string): FoundProfile {
  const file = join(ownFolder(home), `${name}.yaml`);
  const checked = parseAgentProfile(parseYaml(file, readOwnFile(ownFolder(home), file, uid)));
  if (!checked.ok) throw new CliError(EXIT.failed, `${file} is no profile of an agent:`, checked.error);
  const { files, container } = checked.value;
  const foreign = [...files, ...(container?.files ?? [])].find((each) => !isOfAgent(name, each));
  if (foreign !== undefined) {
    throw new CliError(
      EXIT.failed,
      `${file} writes to ${foreign.path}: your own profile writes only to these folders`,
      [`~/.${name}/ and ~/.config/${name}/, which no variable moves (moved_by)`],
    );
  }
  const shown = checked.value.sandbox?.writes.find((each) => !isOfAgent(name, { ...each, path: `${each.path}/` }));
  if (shown !== undefined) {
    throw new CliError(EXIT.failed, `${file} shows ${shown.path} in the sandbox: your own profile shows only these`, [
      `~/.${name} and ~/.config/${name}, which no variable moves (moved_by)`,
    ]);
  }
  if (checked.value.account !== undefined) {
    throw new CliError(
      EXIT.failed,
      `${file} has "account", which only a profile of svc may have: it would move tokens`,
    );
  }
  if (checked.value.name === name) return { profile: checked.value, file, own: true };
  throw new CliError(EXIT.failed, `${file} has the name ${checked.value.name}: it must be the file's name`);
}

/** A copied profile must not write what another program runs: its hooks and servers, or a package's scripts. */
function isOfAgent(
  name: string,
  { path, moved_by: movedBy }: Pick<AgentProfile['files'][number], 'path' | 'moved_by'>,
): boolean {
  const isInside = (path.startsWith(`~/.${name}/`) && name !== 'config') || path.startsWith(`~/.config/${name}/`);
  return isInside && movedBy === undefined;
}

/**
 * A profile decides which program gets a credential, and for which hosts. So nobody but the user may be able to write it: not
 * the file, and not the folder, in which it could be replaced. A link is refused, because its target may be anyone's.
 */
function readOwnFile(folder: string, file: string, uid: number | undefined): string {
  requireOwn(folder, lstatSync(folder), uid);
  const read = readRegularFile(file, MAX_PROFILE_BYTES);
  if (!read.ok) throw unreadError(file, read.error);
  requireOwn(file, read.value.stats, uid);
  return read.value.bytes.toString('utf8');
}

function unreadError(file: string, { reason, code }: { readonly reason: string; readonly code: string }): CliError {
  if (reason === 'link') return new CliError(EXIT.failed, `${file} is a link: put the profile itself there`);
  if (reason === 'not_a_file') return new CliError(EXIT.failed, `${file} is not a file`);
  if (reason !== 'too_large') return new CliError(EXIT.failed, `${file} cannot be read: ${code}`);
  return new CliError(EXIT.failed, `${file} is larger than ${MAX_PROFILE_BYTES} bytes: it is no profile of an agent`);
}

function requireOwn(
  path: string,
  stats: { readonly uid: number; readonly mode: number },
  uid: number | undefined,
): void {
  if (uid !== undefined && stats.uid !== uid) {
    throw new CliError(
      EXIT.failed,
      `${path} belongs to user ${stats.uid}, not to you (${uid}): it could send your credential elsewhere`,
    );
  }
  if ((stats.mode & 0o022) === 0) return;
  throw new CliError(EXIT.failed, `${path} can be written by other users (mode ${modeText(stats)})`, [
    `Read it, and if it is as you wrote it: chmod go-w ${path}`,
  ]);
}

function parseYaml(file: string, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new CliError(EXIT.failed, `${file} is not YAML: ${error instanceof Error ? error.message : String(error)}`);
  }
}
