/**
 * A server at a Unix socket, as the sidecar has it for a companion: `node carried_server.ts direct|stream FOLDER PORT`. With `stream` it
 * starts the companion itself and carries its connections. Says `ready` once the port listens.
 *
 * The first byte of a connection is what is wanted of it: `d`, a download; anything else, the number of bytes that came, at their end.
 */
import { spawn } from 'node:child_process';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dial, Multiplex } from '../../sandbox/carrier/multiplex.cjs';

const DOWNLOAD_BYTES = 64 * 1024 * 1024;
const CHUNK = Buffer.alloc(64 * 1024, 'x');
const CARRIER = fileURLToPath(new URL('../../sandbox/carrier/', import.meta.url));

async function sendAll(socket: Socket): Promise<void> {
  for (let sent = 0; sent < DOWNLOAD_BYTES; sent += CHUNK.length) {
    if (!socket.write(CHUNK)) await new Promise((resolve) => socket.once('drain', resolve));
  }
  socket.end();
}

function serve(socket: Socket): void {
  let bytes = 0;
  let isDownload = false;
  socket.on('error', () => undefined);
  socket.on('data', (some) => {
    if (bytes === 0) isDownload = some[0] === 'd'.charCodeAt(0);
    bytes += some.length;
  });
  socket.on('end', () => (isDownload ? void sendAll(socket) : socket.end(String(bytes))));
}

function startDirect(folder: string, port: string, onReady: () => void): void {
  createServer((socket) => socket.on('end', onReady).resume().end()).listen(join(folder, 'ready.sock'), () =>
    spawn(process.execPath, [join(CARRIER, 'companion.cjs'), folder, port], { stdio: 'inherit' }),
  );
}

function startStream(folder: string, port: string, onReady: () => void): void {
  const program = `require(${JSON.stringify(join(CARRIER, 'multiplex.cjs'))}).runCompanion([${port}])`;
  const child = spawn(process.execPath, ['--eval', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const { stdin: output, stdout: input } = child;
  const accept = (): Socket => dial(join(folder, `${port}.sock`));
  void new Multiplex({ input, output, accept, onReady, onOver: (why) => process.stderr.write(`over: ${why}\n`) });
}

const [, , kind, folder = '', port = ''] = process.argv;
createServer({ allowHalfOpen: true }, serve).listen(join(folder, `${port}.sock`), () =>
  (kind === 'stream' ? startStream : startDirect)(folder, port, () => process.stdout.write('ready\n')),
);
