'use strict';
// Carries connections from a loopback port to a Unix socket. CommonJS without types: it runs where nothing of svc but these files is.
const { connect, createServer } = require('node:net');

/** Resolves with the listening server. */
function carry(port, socket) {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = connect({ path: socket, allowHalfOpen: true });
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
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
