'use strict';
// Runs inside a container's network namespace: listens on loopback there, passes the listening sockets to the sidecar that started it,
// and exits. Arguments: the ports. It reads no environment and accepts no connection. CommonJS without types, because each launch waits
// for its start.
const { createServer } = require('node:net');

function listenAt(port) {
  const server = createServer({ pauseOnConnect: true });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1' }, () => resolve({ port, server }));
  });
}

function handOver({ port, server }) {
  return new Promise((resolve) => {
    process.send({ port }, server, () => {
      server.close();
      resolve();
    });
  });
}

async function main(ports) {
  const servers = await Promise.all(ports.map(listenAt));
  for (const each of servers) await handOver(each);
  process.disconnect();
}

main(process.argv.slice(2).map(Number)).catch((error) => {
  process.send({ code: error.code || 'UNKNOWN' }, () => process.exit(1));
});
