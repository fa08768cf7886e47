import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listenAt } from './node_listen.ts';
import { detectOtherUsers } from './node_peer_user.ts';

const OWN = 1000;
let folder: string;
let server: Server;
let client: Socket;
let accepted: Socket;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-peer-'));
  const taken = Promise.withResolvers<Socket>();
  server = createServer((socket) => taken.resolve(socket));
  const { port } = await listenAt(server, '127.0.0.1', 0);
  client = connect({ host: '127.0.0.1', port });
  accepted = await taken.promise;
});
afterEach(async () => {
  client.destroy();
  accepted.destroy();
  server.close();
  await once(server, 'close');
  rmSync(folder, { recursive: true });
});

function end(port: number | undefined): string {
  return `0100007F:${(port ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** A kernel table in which the client's end of the connection belongs to a user. */
function tableOf(uid: number, state = '01'): string {
  const path = join(folder, 'tcp');
  const fields = [end(accepted.remotePort), end(accepted.localPort), state, '0:0', '00:0', '0', uid, '0', '7777'];
  writeFileSync(path, `  sl  local_address rem_address   st\n   0: ${fields.join(' ')} 1\n`);
  return path;
}

const isOther = (tables: readonly string[], uid: number | undefined = OWN) => detectOtherUsers(uid, tables)(accepted);

test('a connection of another user is distinguished from one of ours', async () => {
  expect(await isOther([tableOf(OWN + 1)])).toBe(true);
  expect(await isOther([tableOf(OWN)])).toBe(false);
});

test('root is not another user, because it can be anybody', async () => {
  expect(await isOther([tableOf(0)])).toBe(false);
});

test('the second table is read if the first has no entry or cannot be read', async () => {
  expect(await isOther([join(folder, 'none'), tableOf(OWN + 1)])).toBe(true);
});

test('nobody is another user if the tables do not say so', async () => {
  expect(await isOther([join(folder, 'none')])).toBe(false);
  expect(await isOther([tableOf(OWN + 1, '08')])).toBe(false);
  const table = tableOf(OWN + 1);
  expect(await detectOtherUsers(undefined, [table])(accepted)).toBe(false);
  expect(await detectOtherUsers(OWN, [table])(undefined)).toBe(false);
});

test('a connection is looked up once, whatever the table says later', async () => {
  const ask = detectOtherUsers(OWN, [tableOf(OWN + 1)]);
  expect(await ask(accepted)).toBe(true);
  tableOf(OWN);
  expect(await ask(accepted)).toBe(true);
});

test('the system’s own tables contain the connections of this program', async () => {
  const uid = process.getuid?.();
  expect(await detectOtherUsers(uid)(accepted)).toBe(false);
});
