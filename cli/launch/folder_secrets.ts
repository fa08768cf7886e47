import { dirname, join } from 'node:path';
import { readRegularFile } from '../../machine/regular_file.ts';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';
import { parseJson } from '../../shared/model/json.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { isExactObjectOf, isOneOf, isRecordOf, isText, isTextList, parseExactFields } from '../read_fields.ts';
import { changeUnderLock } from './hosts/allowed_hosts.ts';

/** The file of a project's folder that names the secrets which sessions there use (decision 0064). */
export const FOLDER_FILE = '.svc.toml';
/** Larger than any honest list; a larger file is not read. */
const MAX_FOLDER_FILE_BYTES = 16 * 1024;

/**
 * In the state directory, which no container reaches: the folders whose `.svc.toml` a person confirmed on this machine, with the
 * hash of what the person saw. The file itself comes with a repository, and an agent can write it (decision 0064).
 */
const TRUST_FILE = 'trusted_folders.json';

/** The confirmed hash by the real path of the folder. */
type TrustedFolders = Readonly<Record<string, { readonly sha256: string }>>;

const isSha256 = (value: unknown): value is string => isText(value) && /^[0-9a-f]{64}$/.test(value);
const isTrustedFolders = isRecordOf(isExactObjectOf({ sha256: isSha256 }), (folder) => folder.startsWith('/'));
const isConfirmed = isRecordOf(isTextList);

/** Beside it: the vault paths that were confirmed, to show what has changed since. Nothing is decided by it. */
const CONFIRMED_FILE = 'trusted_secrets.json';

/** The vault paths that a person confirmed last for a folder (a real path); null if that is not known. */
export function findConfirmedSecrets(home: string, folder: string): readonly string[] | null {
  return readConfirmed(home)[folder] ?? null;
}

function readConfirmed(home: string): Readonly<Record<string, readonly string[]>> {
  const text = readPrivateFile(join(home, CONFIRMED_FILE));
  const value = text.ok && text.value !== null ? parseJson(text.value) : null;
  return isConfirmed(value) ? value : {};
}

export function readTrustedFolders(home: string): TrustedFolders {
  const path = join(home, TRUST_FILE);
  const text = readPrivateFile(path);
  if (!text.ok) throw new CliError(EXIT.failed, text.error.message);
  if (text.value === null) return {};
  const read = parseExactFields<{ readonly version: 1; readonly folders: TrustedFolders }>(parseJson(text.value), {
    version: isOneOf([1]),
    folders: isTrustedFolders,
  });
  if (read.ok) return read.value.folders;
  throw new CliError(EXIT.failed, `${path} is damaged: ${read.error}`, [
    'Move it away, then confirm the folders again: svc trust',
  ]);
}

/** What a person confirms: the hash of the file that was shown, and the vault paths in it. */
interface ShownFile {
  readonly sha256: string;
  readonly secrets: readonly string[];
}

/** Confirms the file of a folder; null ends its effect. */
export function changeTrustedFolder(home: string, folder: string, file: ShownFile | null): Promise<void> {
  return changeUnderLock(home, 'trusted_folders.lock', async () => {
    const others = Object.entries(readTrustedFolders(home)).filter(([each]) => each !== folder);
    const all = file === null ? others : [...others, [folder, { sha256: file.sha256 }] as const];
    const sorted = all.toSorted(([a], [b]) => (a < b ? -1 : 1));
    const text = JSON.stringify({ version: 1, folders: Object.fromEntries(sorted) }, null, 2);
    await writePrivateFile(join(home, TRUST_FILE), `${text}\n`);
    const { [folder]: _before, ...rest } = readConfirmed(home);
    const lists = { ...rest, ...(file !== null && { [folder]: file.secrets }) };
    await writePrivateFile(join(home, CONFIRMED_FILE), `${JSON.stringify(lists, null, 2)}\n`);
  });
}

/** What a folder's file says now. */
interface FolderFile {
  readonly sha256: string;
  /** Vault paths, or why the file cannot be used. */
  readonly secrets: Result<readonly string[], string>;
}

/** Reads the file of a folder (a real path) once; null if there is none. What is hashed is what is read. */
export async function readFolderFile(folder: string): Promise<Result<FolderFile | null, string>> {
  const bytes = readRegular(join(folder, FOLDER_FILE));
  if (!bytes.ok || bytes.value === null) return bytes.ok ? ok(null) : bytes;
  // Loaded on use, because few folders have one.
  const [{ createHash }, { parseFolderFile }] = await Promise.all([import('node:crypto'), import('./folder_file.ts')]);
  const sha256 = createHash('sha256').update(bytes.value).digest('hex');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.value);
  } catch {
    return ok({ sha256, secrets: err('it is not UTF-8') });
  }
  return ok({ sha256, secrets: parseFolderFile(text) });
}

function readRegular(path: string): Result<Buffer | null, string> {
  const file = readRegularFile(path, MAX_FOLDER_FILE_BYTES);
  if (file.ok) return ok(file.value.bytes);
  const { reason, code } = file.error;
  if (reason === 'absent') return ok(null);
  if (reason === 'link') return err('it is a link, and svc follows none');
  if (reason === 'not_a_file') return err('it is not a file');
  if (reason === 'too_large') return err(`it is larger than ${MAX_FOLDER_FILE_BYTES / 1024} KiB`);
  return err(`it cannot be read (${code})`);
}

/** What the folders above a working directory say about secrets. */
type FolderState =
  | { readonly kind: 'none' }
  | { readonly kind: 'trusted'; readonly folder: string; readonly secrets: readonly string[] }
  /** A person confirmed the file, and it has changed, is gone, or cannot be read. */
  | { readonly kind: 'changed'; readonly folder: string; readonly problem: string };

/** The nearest confirmed file, and files nearer than it that nobody confirmed: they have no effect. */
interface FolderSecrets {
  readonly state: FolderState;
  readonly unconfirmed: readonly string[];
}

/** Looks in a folder (a real path) and its parents. A file that nobody confirmed neither counts nor hides one that does. */
export async function findFolderSecrets(trusted: TrustedFolders, folder: string): Promise<FolderSecrets> {
  const unconfirmed: string[] = [];
  for (let at = folder; ; at = dirname(at)) {
    const found = await readFolderFile(at);
    if (Object.hasOwn(trusted, at)) return { state: stateOf(at, trusted[at]?.sha256 ?? '', found), unconfirmed };
    if (!found.ok || found.value !== null) unconfirmed.push(at);
    if (dirname(at) === at) return { state: { kind: 'none' }, unconfirmed };
  }
}

function stateOf(folder: string, sha256: string, found: Awaited<ReturnType<typeof readFolderFile>>): FolderState {
  if (!found.ok) return { kind: 'changed', folder, problem: found.error };
  if (found.value === null) return { kind: 'changed', folder, problem: 'it is gone' };
  if (found.value.sha256 !== sha256) return { kind: 'changed', folder, problem: 'it was changed' };
  const { secrets } = found.value;
  return secrets.ok
    ? { kind: 'trusted', folder, secrets: secrets.value }
    : { kind: 'changed', folder, problem: secrets.error };
}
