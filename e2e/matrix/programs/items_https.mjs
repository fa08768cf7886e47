// Node's https module with its own global agent. Its argument: the URL of the items.
import { request } from 'node:https';

function call(method, url, body) {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers: { 'content-type': 'application/json' } }, (reply) => {
      let text = '';
      reply.setEncoding('utf8');
      reply.on('data', (chunk) => (text += chunk));
      reply.on('end', () => resolve({ status: reply.statusCode, text }));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

const url = process.argv[2];
const got = await call('GET', `${url}?page=1`);
const made = await call('POST', url, JSON.stringify({ title: 'a' }));
process.stdout.write(`${got.status} ${made.status} ${made.text}\n`);
