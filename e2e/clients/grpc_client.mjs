// Calls of gRPC of every form with @grpc/grpc-js, configured by the environment alone. Its arguments: a target, the number of
// messages of the bidirectional call, and the deadline of a call without a reply (0: none is made).
import process from 'node:process';
import grpc from '@grpc/grpc-js';
import { ECHO } from '../support/grpc_echo.ts';

const [target, messages = '20', deadlineMs = '300'] = process.argv.slice(2);
const Echo = grpc.makeGenericClientConstructor(ECHO);
const client = new Echo(target, grpc.credentials.createSsl());

/** Awaits a call with one reply. */
function whenDone(start) {
  return new Promise((resolve) => {
    const seen = {};
    const call = start((error, reply) => {
      Object.assign(seen, error ? { code: error.code, details: error.details } : { reply: reply.toString() });
    });
    call.on('metadata', (metadata) => (seen.head = metadata.get('x-head')[0]));
    call.on('status', (status) => resolve({ ...seen, tail: status.metadata.get('x-tail')[0] }));
  });
}

function whenEnded(call) {
  return new Promise((resolve) => {
    call.on('error', () => undefined);
    call.on('status', ({ code }) => resolve(code));
  });
}

const metadata = new grpc.Metadata();
metadata.set('x-note', 'from the agent');
metadata.set('x-note-bin', Buffer.of(0, 255, 1));
const unary = await whenDone((done) => client.unary(Buffer.from('a'), metadata, done));
if (unary.code !== undefined) {
  process.stdout.write(JSON.stringify({ unary }));
  process.exit(0);
}

const down = client.down(Buffer.from('3'));
const downReplies = [];
down.on('data', (reply) => downReplies.push(reply.toString()));
const downCode = await whenEnded(down);

const up = await whenDone((done) => {
  const call = client.up(done);
  for (const text of ['a', 'b', 'c']) call.write(Buffer.from(text));
  call.end();
  return call;
});

/** At most this many messages wait for their echo. */
const WINDOW = 1000;
let sent = 0;
let received = 0;
let mostBytes = 0;
const both = client.both();
function sendMore() {
  for (; sent < Number(messages) && sent - received < WINDOW; sent += 1) both.write(Buffer.from(`message ${sent}`));
  if (received === Number(messages)) both.end();
}
both.on('data', (reply) => {
  if (reply.toString() !== `message ${received}`) throw new Error(`out of order: ${reply}`);
  received += 1;
  if (received % 10_000 === 0) mostBytes = Math.max(mostBytes, process.memoryUsage.rss());
  sendMore();
});
sendMore();
const bothCode = await whenEnded(both);

const fail = await whenDone((done) => client.fail(Buffer.from('x'), done));
let wait;
if (deadlineMs !== '0') {
  const deadline = Date.now() + Number(deadlineMs);
  wait = await whenDone((done) => client.wait(Buffer.from('x'), { deadline }, done));
}
client.close();
process.stdout.write(
  JSON.stringify({ unary, down: [downCode, ...downReplies], up, both: [bothCode, received], fail, wait }),
);
if (mostBytes > 0) process.stderr.write(`client: ${Math.round(mostBytes / 2 ** 20)} MiB\n`);
