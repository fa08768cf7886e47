// fetch of Node or Deno, configured by the environment alone. Its argument: the URL of the items.
import process from 'node:process';

const url = process.argv[2];
const got = await fetch(`${url}?page=1`);
const made = await fetch(url, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ title: 'a' }),
});
process.stdout.write(`${got.status} ${made.status} ${await made.text()}\n`);
