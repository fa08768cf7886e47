import { closeSync, openSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { errorCode } from '../../shared/model/error_code.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { listenInFolder, LONGEST_PATH_BYTES } from './listen_in_folder.ts';
import type { WantedListener } from './namespace_listener.ts';

interface NamedListener {
  readonly server: Server;
  readonly name: string;
}

/** The folder of a companion's sockets, in that of its session. */
export function socketFolderOf(directory: string): string {
  return join(directory, 'companion');
}

export function socketName(port: number): string {
  return `${port}.sock`;
}

/** The listener of a port as a socket. */
export function toSocket({ server, port }: WantedListener): NamedListener {
  return { server, name: socketName(port) };
}

/** A folder by a path that is short enough for a socket's address, until it is closed. */
interface ShortFolder {
  readonly path: string;
  readonly close: () => void;
}

export function shortFolder(folder: string): ShortFolder {
  const longest = join(folder, socketName(65_535));
  if (Buffer.byteLength(longest) <= LONGEST_PATH_BYTES) return { path: folder, close: () => undefined };
  const descriptor = openSync(folder, 'r');
  return { path: `/proc/self/fd/${descriptor}`, close: () => closeSync(descriptor) };
}

/** Makes servers listen on sockets of a folder that only this user may enter: all of them, or an error in words. */
export async function listenOnSockets(all: readonly NamedListener[], folder: string): Promise<Result<void, string>> {
  try {
    await makeOwnFolder(folder);
    for (const { server, name } of all) await listenInFolder(server, folder, name);
    return ok(undefined);
  } catch (error) {
    return err(error instanceof Error ? error.message : 'unknown error');
  }
}

/** The folder may be there already. The session's own folder is not made again: it is gone once the session has ended. */
async function makeOwnFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    await chmod(folder, 0o700);
  }
}
