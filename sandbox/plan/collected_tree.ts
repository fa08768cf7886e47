import { constants } from 'node:fs';
import { link, mkdir, open, symlink, type FileHandle } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { TarEntry, TarSink } from './tar_reader.ts';

/** Limits on the outputs of one step. */
export interface CollectLimits {
  readonly maxBytes: number;
  readonly maxEntries: number;
}

/** Why an output is refused: the rest of a sentence that begins with the output's path. */
export class CollectError extends Error {
  override readonly name = 'CollectError';
}

const MAX_NAME_BYTES = 255;
const MAX_DEPTH = 64;
const CREATE = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;

/**
 * Extracts an archive, which a hostile step may have crafted, as `name` into a new private folder (`root`). Nothing is written
 * outside it or through a link: links are created last and only if they stay within the output; devices, pipes and sockets are
 * refused. Owners, set-user-id bits and attributes are not applied.
 */
export class CollectedTree implements TarSink {
  readonly #root: string;
  readonly #name: string;
  readonly #limits: CollectLimits;
  readonly #mayRead: (entry: TarEntry) => boolean;
  readonly #folders = new Set<string>();
  readonly #files = new Set<string>();
  readonly #links: { readonly path: string; readonly target: string }[] = [];
  #file: FileHandle | null = null;
  #entries = 0;
  bytes = 0;

  /** `mayRead`: whether the step's user could have read the entry itself. */
  constructor(root: string, name: string, limits: CollectLimits, mayRead: (entry: TarEntry) => boolean) {
    this.#root = root;
    this.#name = name;
    this.#limits = limits;
    this.#mayRead = mayRead;
  }

  async entry(entry: TarEntry): Promise<void> {
    this.#entries += 1;
    if (this.#entries > this.#limits.maxEntries)
      throw new CollectError(`has more than ${this.#limits.maxEntries} files`);
    const path = this.#resolvePath(entry.name);
    if (!this.#mayRead(entry)) throw refusalOf(path, 'is not readable for the user that the step ran as');
    if (entry.kind === 'folder') await this.#addFolder(path);
    else if (entry.kind === 'file') await this.#openFile(path, entry);
    else if (entry.kind === 'symlink') this.#addLink(path, entry.target);
    else if (entry.kind === 'hardlink') await this.#addHardLink(path, entry.target);
    else throw refusalOf(path, 'is a device, a pipe or a socket');
  }

  async data(chunk: Uint8Array): Promise<void> {
    this.bytes += chunk.length;
    await this.#file?.writeFile(chunk);
  }

  async endOfFile(): Promise<void> {
    await this.#file?.close();
    this.#file = null;
  }

  /** Creates the links. Call it after the whole archive was read. */
  async finish(): Promise<void> {
    if (this.#entries === 0) throw new CollectError('is not there');
    for (const { path, target } of this.#links) await symlink(target, join(this.#root, path));
  }

  /** Closes a file that was not read completely. */
  async abandon(): Promise<void> {
    await this.#file?.close().catch(() => undefined);
    this.#file = null;
  }

  /** The path of an entry, relative to the root. Its first part, the output's own name, is replaced with ours. */
  #resolvePath(name: string): string {
    const parts = name.replace(/\/+$/, '').split('/');
    const bad = parts.find((part) => part === '' || part === '.' || part === '..' || part.includes('\0'));
    if (bad !== undefined || parts.length > MAX_DEPTH) throw refusalOf(name, 'is a name that leads elsewhere');
    if (parts.some((part) => Buffer.byteLength(part) > MAX_NAME_BYTES)) throw refusalOf(name, 'has too long a name');
    const path = [this.#name, ...parts.slice(1)].join('/');
    const taken = this.#files.has(path) || this.#links.some((other) => other.path === path);
    if (taken) throw refusalOf(path, 'is there twice');
    const parent = posix.dirname(path);
    if (parent !== '.' && !this.#folders.has(parent)) throw refusalOf(path, 'lies in no folder of the output');
    return path;
  }

  async #addFolder(path: string): Promise<void> {
    if (this.#folders.has(path)) throw refusalOf(path, 'is there twice');
    await mkdir(join(this.#root, path), { mode: 0o755 });
    this.#folders.add(path);
  }

  async #openFile(path: string, entry: TarEntry): Promise<void> {
    if (this.#folders.has(path)) throw refusalOf(path, 'is there twice');
    // The reader passes on at most as many bytes as the entry announced.
    if (this.bytes + entry.size > this.#limits.maxBytes) {
      throw new CollectError(`has more than ${this.#limits.maxBytes} bytes`);
    }
    this.#files.add(path);
    this.#file = await open(join(this.#root, path), CREATE, (entry.mode & 0o111) === 0 ? 0o644 : 0o755);
  }

  /**
   * A link's target is relative to its folder: leading `..` parts may not go above the output, and no others may follow. As
   * this holds for every link, no chain of links leaves the output.
   */
  #addLink(path: string, target: string): void {
    const parts = target.split('/');
    const up = parts.findIndex((part) => part !== '..');
    const down = up < 0 ? [] : parts.slice(up);
    const depth = path.split('/').length - 2;
    const leaves =
      target === '' || target.includes('\0') || target.startsWith('/') || parts.length - down.length > depth;
    if (leaves || down.includes('..')) throw refusalOf(path, `is a link that leads elsewhere (${toPrintable(target)})`);
    this.#links.push({ path, target });
  }

  async #addHardLink(path: string, target: string): Promise<void> {
    const [, ...parts] = target.replace(/\/+$/, '').split('/');
    const to = [this.#name, ...parts].join('/');
    if (!this.#files.has(to)) throw refusalOf(path, 'is a hard link to something else than the output');
    await link(join(this.#root, to), join(this.#root, path));
    this.#files.add(path);
  }
}

function refusalOf(path: string, why: string): CollectError {
  return new CollectError(`was not taken: ${JSON.stringify(toPrintable(path))} in it ${why}`);
}
