'use strict';
// The first program in a sandbox (sandbox/bubblewrap/run_sandbox.ts). It carries connections from a loopback port to the session's
// socket and runs the command. It holds no secret but the session's token, which the command has as well, and reaches nothing that the
// command cannot reach itself. CommonJS without types, because it is on the way of every start.
//
// Arguments: the port, the socket, a folder in memory, the command and its arguments. On descriptor 3 it reads the command's
// environment as one line of JSON, then names of signals, one a line; at the end of that, its launcher is gone. On descriptor 4 it
// says that it runs.
const { spawn } = require('node:child_process');
const { closeSync, writeFileSync, writeSync } = require('node:fs');
const { Socket } = require('node:net');
const { constants } = require('node:os');
const { carry } = require('../carrier/carry.cjs');

const ORDERS = 3;
const STATUS = 4;
const SIGNAL_BASE = 128;
const NOT_FOUND = 127;
const NOT_STARTED = 126;
// A terminal sends them to every process; the command alone decides what they do.
const OF_THE_TERMINAL = ['SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'];

const [port, socket, access, command, ...args] = process.argv.slice(2);

for (const name of OF_THE_TERMINAL) process.on(name, () => undefined);

// For `svc mcp gateway`: most MCP clients start it with few variables of their own environment.
function giveAccess({ SVC_TOKEN: token }) {
  if (token !== undefined) writeFileSync(`${access}/token`, token, { mode: 0o600 });
}

function run(env) {
  giveAccess(env);
  const child = spawn(command, args, { env, stdio: 'inherit' });
  child.on('error', (error) => {
    const why = error.code === 'ENOENT' ? 'not found in the sandbox' : error.message;
    process.stderr.write(`svc run: ${JSON.stringify(command)}: ${why}\n`);
    process.exit(error.code === 'ENOENT' ? NOT_FOUND : NOT_STARTED);
  });
  child.on('exit', (code, signal) => process.exit(signal === null ? code : SIGNAL_BASE + constants.signals[signal]));
  return child;
}

async function main() {
  await carry(port, socket);
  writeSync(STATUS, 'runs\n');
  closeSync(STATUS);
  let text = '';
  let child = null;
  // A socket, because a file's pending read would keep the process from ending.
  const orders = new Socket({ fd: ORDERS, readable: true, writable: false });
  orders.setEncoding('utf8');
  orders.on('data', (some) => {
    text += some;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      if (child === null) child = run(JSON.parse(line));
      else child.kill(line);
    }
  });
  orders.on('end', () => process.exit(SIGNAL_BASE + constants.signals.SIGKILL));
}

main().catch((error) => {
  process.stderr.write(`svc run: the sandbox cannot reach the proxy: ${error.message}\n`);
  process.exit(1);
});
