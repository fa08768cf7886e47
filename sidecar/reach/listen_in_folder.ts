import { chmod, type FileHandle, open, rm } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';

/** A longer path fits in no address of a socket (unix(7)). */
export const LONGEST_PATH_BYTES = 100;

/**
 * Listens on a socket in a folder, whose path may be too long for a socket's address. Only this user may connect. An older socket
 * there is replaced.
 */
export async function listenInFolder(server: Server, folder: string, name: string): Promise<void> {
  const path = join(folder, name);
  await rm(path, { force: true });
  if (Buffer.byteLength(path) <= LONGEST_PATH_BYTES) {
    await listenAt(server, path);
  } else {
    const handle: FileHandle = await open(folder, 'r');
    try {
      await listenAt(server, `/proc/self/fd/${handle.fd}/${name}`);
    } finally {
      await handle.close();
    }
  }
  await chmod(path, 0o600);
}

function listenAt(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
