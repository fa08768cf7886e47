// @connectrpc/connect-node in its three protocols, over HTTP/2, for which it knows no proxy. Its argument: a host.
import process from 'node:process';
import { Code, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { CONNECT_ECHO } from '../connect_echo.ts';
import { openTunnel } from './tunnel.mjs';

const host = process.argv[2];

async function* messages(count) {
  for (let at = 0; at < count; at += 1) yield { value: `message ${at}` };
}

async function textsOf(replies) {
  const texts = [];
  for await (const { value } of replies) texts.push(value);
  return texts;
}

async function callBy(createTransport) {
  const connection = await openTunnel(host);
  const nodeOptions = { createConnection: () => connection };
  const transport = createTransport({ baseUrl: `https://${host}`, httpVersion: '2', nodeOptions });
  const client = createClient(CONNECT_ECHO, transport);
  const said = {
    unary: (await client.unary({ value: 'a' })).value,
    down: await textsOf(client.down({ value: '3' })),
    both: await textsOf(client.both(messages(3))),
    fail: await client.fail({ value: 'x' }).catch(({ code, rawMessage }) => [Code[code], rawMessage]),
  };
  connection.destroy();
  return said;
}

process.stdout.write(
  JSON.stringify([
    await callBy(createConnectTransport),
    await callBy(createGrpcTransport),
    await callBy(createGrpcWebTransport),
  ]),
);
