'use strict';
// Carries connections from a loopback port to a Unix socket. CommonJS without types: it runs where nothing of svc but these files is.
const { connect, createServer } = require('node:net');

const NOBODY_LISTENS = new Set(['ECONNREFUSED', 'ENOENT']);

/** Resolves with the listening server. `onGone` is called for a connection at whose socket nobody listens. */
function carry(port, socket, onGone = () => undefined) {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = connect({ path: socket, allowHalfOpen: true });
    near.on('error', () => far.destroy());
    far.on('error', ({ code }) => {
      // A clean end would be the end of an answer.
      near.resetAndDestroy();
      if (NOBODY_LISTENS.has(code)) onGone();
    });
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
    near.pipe(far);
    far.pipe(near);
  });
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(Number(port), '127.0.0.1', () => resolve(server));
  });
}

module.exports = { carry };
