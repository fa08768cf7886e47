import { once } from 'node:events';
import { connect, type Http2Session } from 'node:http2';
import { connect as openSocket, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { listen } from './listen.ts';
import { CONNECTION_WINDOW_BYTES, openConnectionWindow } from './stream_limits.ts';

/** A session on a connected socket whose other side says nothing. */
async function openSession(): Promise<{ readonly session: Http2Session; readonly close: () => void }> {
  const server = createServer();
  const port = await listen(server, 0, '127.0.0.1');
  const socket = openSocket(port, '127.0.0.1');
  await once(socket, 'connect');
  const session = connect('http://127.0.0.1', { createConnection: () => socket });
  const close = (): void => {
    session.destroy();
    server.close();
  };
  return { session, close };
}

test('the window of a connection is opened when its session begins', async () => {
  const { session, close } = await openSession();
  openConnectionWindow(session);
  await once(session, 'connect');
  expect(session.state.localWindowSize).toBe(CONNECTION_WINDOW_BYTES);
  close();
});

test('nothing is thrown for a session that was destroyed before it began', async () => {
  const { session, close } = await openSession();
  const begun = once(session, 'connect');
  openConnectionWindow(session);
  session.destroy();
  // What a listener throws would end the sidecar: here it fails the run.
  await begun;
  expect(session.destroyed).toBe(true);
  close();
});
