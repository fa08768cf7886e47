// For libraries that take a connection, but know no proxy: a tunnel to port 443 of a host, through the proxy of the environment.
import { once } from 'node:events';
import { request } from 'node:http';
import process from 'node:process';
import { connect } from 'node:tls';

/** A TLS connection that has agreed on HTTP/2. */
export async function openTunnel(host) {
  const { hostname, port, username, password } = new URL(process.env.HTTPS_PROXY);
  const connecting = request({
    method: 'CONNECT',
    hostname,
    port,
    path: `${host}:443`,
    headers: { 'proxy-authorization': `Basic ${btoa(`${username}:${password}`)}` },
    agent: false,
  });
  connecting.end();
  const [{ statusCode }, socket] = await once(connecting, 'connect');
  if (statusCode !== 200) throw new Error(`the proxy answered ${statusCode}`);
  const tls = connect({ socket, servername: host, ALPNProtocols: ['h2'] });
  await once(tls, 'secureConnect');
  return tls;
}
