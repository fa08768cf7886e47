'use strict';
// The first program in a sandbox (sandbox/bubblewrap/run_sandbox.ts). It carries connections from a loopback port to the session's
// socket and runs the command. It holds no secret but the session's token, which the command has as well, and reaches nothing that the
// command cannot reach itself. CommonJS without types, because it is on the way of every start.
//
// Arguments: the port, the socket, a folder in memory, the command and its arguments. On descriptor 3 it reads what has to be mounted
// and the command's environment, each as one line of JSON, then names of signals, one a line; at the end of that, its launcher is
// gone. On descriptor 4 it says that it runs.
const { spawn } = require('node:child_process');
const { closeSync, constants: files, fstatSync, openSync, readFileSync, readlinkSync } = require('node:fs');
const { writeFileSync, writeSync } = require('node:fs');
const { Socket } = require('node:net');
const { constants } = require('node:os');
const { carry } = require('../carrier/carry.cjs');

const ORDERS = 3;
const STATUS = 4;
const O_PATH = 0o10000000;
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

// As in file_identity.ts. Undefined: the command, which has the same rights, cannot open it either.
function identifyFile(path) {
  let descriptor;
  try {
    descriptor = openSync(path, O_PATH | files.O_NOFOLLOW);
  } catch (error) {
    return error.code === 'EACCES' ? undefined : null;
  }
  try {
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    return readlinkSync(`/proc/self/fd/${descriptor}`) === path ? `${dev}:${ino}` : null;
  } finally {
    closeSync(descriptor);
  }
}

// The kernel writes blanks and backslashes in octal.
function unescapePath(text) {
  return text.replace(/\\([0-7]{3})/g, (_all, code) => String.fromCharCode(parseInt(code, 8)));
}

function listMountPoints() {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return new Set(lines.map((line) => unescapePath(line.split(' ')[4] ?? '')));
}

// bubblewrap follows links, in what it mounts and in where. Another agent in the same folder could swap a path for a link meanwhile,
// and so have something mounted from elsewhere, or to elsewhere.
function checkMounted(expected) {
  const points = listMountPoints();
  for (const [path, identity] of expected) {
    const found = identifyFile(path);
    if (found === undefined || (found !== null && found === identity && points.has(path))) continue;
    process.stderr.write(`svc run: ${JSON.stringify(path)} was changed while the sandbox was made. Start it again.\n`);
    process.exit(1);
  }
  writeSync(STATUS, 'runs\n');
  closeSync(STATUS);
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
  let text = '';
  let isChecked = false;
  let child = null;
  // A socket, because a file's pending read would keep the process from ending.
  const orders = new Socket({ fd: ORDERS, readable: true, writable: false });
  orders.setEncoding('utf8');
  orders.on('data', (some) => {
    text += some;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      if (!isChecked) {
        checkMounted(JSON.parse(line));
        isChecked = true;
      } else if (child === null) child = run(JSON.parse(line));
      else child.kill(line);
    }
  });
  orders.on('end', () => process.exit(SIGNAL_BASE + constants.signals.SIGKILL));
}

main().catch((error) => {
  process.stderr.write(`svc run: the sandbox cannot reach the proxy: ${error.message}\n`);
  process.exit(1);
});
