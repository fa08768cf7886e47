import { join } from 'node:path';
import { expect } from 'vitest';
import { pythonWith } from '../../tools/system_parts.mjs';
import { CLOUD_PACKAGES } from '../support/cloud_sdks.ts';
import { PROXY, type MatrixClient } from './client.ts';
import { HOSTS, PROGRAMS, type MatrixWorld } from './world.ts';

const PYTHON = pythonWith('google.auth') ?? 'python3';
const GOOGLE_ITEMS = `https://${HOSTS.google}/items`;
const AZURE_ITEMS = `https://${HOSTS.azure}/items`;

/** An environment with none of this machine's own logins. */
const bare = (world: MatrixWorld, name: string): Record<string, string> => ({ HOME: world.folder(name) });

async function useNode(world: MatrixWorld, program: string, url: string): Promise<string> {
  const env = bare(world, program);
  return world.run([process.execPath, join(PROGRAMS, program), url, CLOUD_PACKAGES], { env });
}

async function useGoogle(world: MatrixWorld): Promise<void> {
  expect(await useNode(world, 'items_google.mjs', GOOGLE_ITEMS)).toBe('Compute 200 201\n');
}

async function useGoogleInPython(world: MatrixWorld): Promise<void> {
  const env = bare(world, 'google-python');
  const said = await world.run([PYTHON, join(PROGRAMS, 'items_google.py'), GOOGLE_ITEMS], { env });
  expect(said).toBe('google.auth.compute_engine.credentials 200 201\n');
}

async function useAzure(world: MatrixWorld): Promise<void> {
  expect(await useNode(world, 'items_azure.mjs', AZURE_ITEMS)).toBe('200 201\n');
}

const note = 'without a key: svc gives it a placeholder token, which the proxy replaces';
const tried = 'GET, POST with its default credentials';

export const CLOUD_CLIENTS: readonly MatrixClient[] = [
  {
    name: 'Google for Node (google-auth-library)',
    probe: `test -d '${CLOUD_PACKAGES}'`,
    packages: null,
    sets: [PROXY, 'NODE_EXTRA_CA_CERTS', 'GCE_METADATA_HOST'],
    tried,
    note,
    works: true,
    service: 'google',
    use: useGoogle,
  },
  {
    name: 'Google for Python (google-auth)',
    probe: `${PYTHON} -c 'import google.auth'`,
    packages: 'python3-google-auth',
    sets: [PROXY, 'REQUESTS_CA_BUNDLE', 'GCE_METADATA_HOST'],
    tried,
    note,
    works: true,
    service: 'google',
    use: useGoogleInPython,
  },
  {
    name: 'Azure for Node (@azure/identity)',
    probe: `test -d '${CLOUD_PACKAGES}'`,
    packages: null,
    sets: [PROXY, 'NODE_EXTRA_CA_CERTS', 'IDENTITY_ENDPOINT'],
    tried,
    note,
    works: true,
    service: 'azure',
    use: useAzure,
  },
];
