'use strict';
// The program of a companion container (docs/decisions/0127). It shares the network of an agent's container and carries connections
// from loopback ports there to the sidecar's sockets. It holds no secret, and reaches nothing but these sockets.
//
// Arguments: the folder of the sockets, then the ports. Each port has its socket, `<port>.sock`. Once all ports listen, it connects to
// `ready.sock` there, which tells the sidecar so.
const { connect } = require('node:net');
const { carry } = require('./carry.cjs');

// Far more than a session may have open at the proxy. What an agent opens beyond that is closed, and costs no memory here.
const MAX_CONNECTIONS = 1024;

const [folder, ...ports] = process.argv.slice(2);

// As the first process of its container it would ignore the signal, and the engine's stop would wait for it.
process.on('SIGTERM', () => process.exit(0));

async function main() {
  for (const port of ports) {
    const server = await carry(port, `${folder}/${port}.sock`);
    server.maxConnections = MAX_CONNECTIONS;
  }
  // Nothing listens there when the engine starts the container again.
  connect({ path: `${folder}/ready.sock` }, function ready() {
    this.end();
  }).on('error', () => undefined);
}

main().catch((error) => {
  process.stderr.write(`svc companion: ${error.message}\n`);
  process.exit(1);
});
