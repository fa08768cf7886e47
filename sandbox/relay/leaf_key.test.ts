import { createHash, X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startDataPlane, type DataPlane } from '../../sidecar/testing/data_plane.ts';
import { createAuthority } from '../../sidecar/tls/certificates.ts';
import { sessionLeafKeyHash } from './leaf_key.ts';
import { startRelay, type Relay } from './relay.ts';

let plane: DataPlane;
let relay: Relay;

beforeEach(async () => {
  plane = await startDataPlane();
  const proxyUrl = `http://ses_test:${plane.token}@127.0.0.1:${plane.port}`;
  const made = await startRelay({ proxyUrl, uid: 1, peerUid: () => Promise.resolve(1) });
  if (!made.ok) throw new Error(made.error.message);
  relay = made.value;
});
afterEach(async () => {
  await relay.close();
  await plane.stop();
});

test('is the hash of the key in every certificate of the session; reading it causes no event', async () => {
  const found = await sessionLeafKeyHash(relay.port, plane.caPem);
  expect(plane.audit.events).toEqual([]);
  const client = await plane.open('api.example.test');
  const leaf = new X509Certificate(client.getPeerCertificate().raw);
  client.destroy();
  const key = leaf.publicKey.export({ type: 'spki', format: 'der' });
  expect(found).toBe(createHash('sha256').update(key).digest('base64'));
});

test('is not read from a proxy with another certificate authority', async () => {
  const other = await createAuthority('other', Date.now());
  await expect(sessionLeafKeyHash(relay.port, other.certificatePem)).rejects.toThrow('unable to verify');
});

test('fails with a message if the proxy opens no tunnel', async () => {
  const made = await startRelay({
    proxyUrl: `http://ses_test:wrong@127.0.0.1:${plane.port}`,
    uid: 1,
    peerUid: () => Promise.resolve(1),
  });
  if (!made.ok) throw new Error(made.error.message);
  await expect(sessionLeafKeyHash(made.value.port, plane.caPem)).rejects.toThrow('HTTP/1.1 407');
  await made.value.close();
});
