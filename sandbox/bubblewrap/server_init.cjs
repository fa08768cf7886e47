'use strict';
// The first program in the sandbox of an MCP server (gateway/servers/sealed_sandbox.ts). It carries connections from a loopback port
// to the session's socket and runs the server, which alone reads and writes the three streams. It holds no secret that the server does
// not have. CommonJS without types, because nothing of svc but this and the carrier is in the sandbox.
//
// Arguments: the port, the socket, the server's command and its arguments.
const { spawn } = require('node:child_process');
const { constants } = require('node:os');
const { carry } = require('../carrier/carry.cjs');

const SIGNAL_BASE = 128;
const NOT_FOUND = 127;
const NOT_STARTED = 126;

const [port, socket, command, ...args] = process.argv.slice(2);

// They are sent to the whole process group, and the server decides what they do.
for (const name of ['SIGINT', 'SIGHUP', 'SIGTERM']) process.on(name, () => undefined);

function run() {
  const child = spawn(command, args, { stdio: 'inherit' });
  child.on('error', (error) => {
    const why = error.code === 'ENOENT' ? 'not found in the sandbox' : error.message;
    process.stderr.write(`svc: ${JSON.stringify(command)}: ${why}\n`);
    process.exit(error.code === 'ENOENT' ? NOT_FOUND : NOT_STARTED);
  });
  child.on('exit', (code, signal) => process.exit(signal === null ? code : SIGNAL_BASE + constants.signals[signal]));
}

// The session is over, and its token opens nothing any more. The gateway starts the server again with a new one. All other processes
// of the sandbox end with this one.
function endWithSession() {
  process.stderr.write("svc: the server's session has ended\n");
  process.exit(1);
}

carry(port, socket, endWithSession).then(run, (error) => {
  process.stderr.write(`svc: the sandbox cannot reach the proxy: ${error.message}\n`);
  process.exit(1);
});
