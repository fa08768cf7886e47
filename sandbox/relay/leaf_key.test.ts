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

test('is the hash of the key that the session shows to every host, and leaves no event behind', async () => {
  const found = await sessionLeafKeyHash(relay.port, plane.caPem);
  expect(plane.audit.events).toEqual([]);
  const client = await plane.open('api.example.test');
  const leaf = new X509Certificate(client.getPeerCertificate().raw);
  client.destroy();
  const key = leaf.publicKey.export({ type: 'spki', format: 'der' });
  expect(found).toBe(createHash('sha256').update(key).digest('base64'));
});

test('is not taken from a proxy with another certificate authority', async () => {
  const other = await createAuthority('other', Date.now());
  await expect(sessionLeafKeyHash(relay.port, other.certificatePem)).rejects.toThrow('unable to verify');
});

test('says so when the proxy does not give a tunnel', async () => {
  const made = await startRelay({
    proxyUrl: `http://ses_test:wrong@127.0.0.1:${plane.port}`,
    uid: 1,
    peerUid: () => Promise.resolve(1),
  });
  if (!made.ok) throw new Error(made.error.message);
  await expect(sessionLeafKeyHash(made.value.port, plane.caPem)).rejects.toThrow('HTTP/1.1 407');
  await made.value.close();
});
