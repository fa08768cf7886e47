// Node's own fetch, configured by the environment alone. Its arguments: URL, then method and body if any.
const [url, method = 'GET', body] = process.argv.slice(2);
const reply = await fetch(url, { method, body });
process.stdout.write(JSON.stringify({ status: reply.status, body: await reply.text() }));
