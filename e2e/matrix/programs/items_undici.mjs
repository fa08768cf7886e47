// undici with HTTP/2, configured by the environment but for `allowH2`. Its arguments: which of its callers, the URL of the items.
import process from 'node:process';
import { EnvHttpProxyAgent, request } from 'undici';

const [caller, url] = process.argv.slice(2);
const dispatcher = new EnvHttpProxyAgent({ allowH2: true, requestTls: { allowH2: true } });
const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ title: 'a' }) };

async function byRequest(to, options) {
  const { statusCode, body } = await request(to, { ...options, dispatcher });
  return { status: statusCode, text: await body.text() };
}

async function byFetch(to, options) {
  const reply = await fetch(to, { ...options, dispatcher });
  return { status: reply.status, text: await reply.text() };
}

const send = caller === 'fetch' ? byFetch : byRequest;
const got = await send(`${url}?page=1`, {});
const made = await send(url, post);
process.stdout.write(`${got.status} ${made.status} ${made.text}\n`);
await dispatcher.close();
