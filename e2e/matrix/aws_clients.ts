import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { awsCli, pythonWith } from '../../tools/system_parts.mjs';
import { countOf } from '../support/full_counts.ts';
import { PROXY, type MatrixClient } from './client.ts';
import { HOSTS, PROGRAMS, type MatrixWorld } from './world.ts';

const MIB = 1024 * 1024;
/** Of 8 MiB, which the SDK for JavaScript uploads. */
const PARTS = countOf(8, 2);
const ENDPOINT = `https://${HOSTS.s3}`;
const PYTHON = pythonWith('boto3') ?? 'python3';
const AWS = awsCli() ?? 'aws';
/** In the keys that svc gives to SDKs. */
const PLACEHOLDER = 'placeholder';

/** An environment without a key, and with nothing of this machine's AWS settings. */
function awsEnvironment(folder: string): Record<string, string> {
  writeFileSync(join(folder, 'config'), '[default]\nregion = us-east-1\ns3 =\n  addressing_style = path\n');
  return {
    AWS_CONFIG_FILE: join(folder, 'config'),
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_MAX_ATTEMPTS: '1',
    AWS_PAGER: '',
  };
}

function expectNoPlaceholder(world: MatrixWorld): void {
  for (const { text } of world.s3.tls.requests) expect(text).not.toContain(PLACEHOLDER);
}

async function useBoto3(world: MatrixWorld): Promise<void> {
  const env = awsEnvironment(world.folder('boto3'));
  const said = await world.run([PYTHON, join(PROGRAMS, 's3_boto3.py'), ENDPOINT, 'bucket'], { env });
  expect(said).toBe('True a report True 0\n');
  expectNoPlaceholder(world);
}

async function useAwsCli(world: MatrixWorld): Promise<void> {
  const folder = world.folder('aws');
  const env = awsEnvironment(folder);
  const s3 = (...args: string[]): Promise<string> =>
    world.run([AWS, '--endpoint-url', ENDPOINT, 's3', ...args], { env, cwd: folder });
  const large = randomBytes(20 * MIB);
  writeFileSync(join(folder, 'large.bin'), large);
  await s3('cp', '--quiet', 'large.bin', 's3://bucket/cli/large.bin');
  expect(await s3('ls', 's3://bucket/cli/')).toContain(` ${large.length} large.bin`);
  await s3('cp', '--quiet', 's3://bucket/cli/large.bin', 'again.bin');
  expect(readFileSync(join(folder, 'again.bin')).equals(large)).toBe(true);
  await s3('rm', '--quiet', 's3://bucket/cli/large.bin');
  expectNoPlaceholder(world);
}

async function useSdk(world: MatrixWorld): Promise<void> {
  const env = awsEnvironment(world.folder('sdk'));
  const said = await world.run([process.execPath, join(PROGRAMS, 's3_sdk.mjs'), ENDPOINT, 'bucket', String(PARTS)], {
    env,
  });
  expect(said).toBe(`${PARTS * 8} true true\n`);
  expectNoPlaceholder(world);
  const forms = world.s3.tls.requests.map((request) => request.header('x-amz-content-sha256') ?? '');
  expect(forms).toContain('STREAMING-UNSIGNED-PAYLOAD-TRAILER');
}

async function useSdkOverHttp2(world: MatrixWorld): Promise<void> {
  const env = awsEnvironment(world.folder('sdk-http2'));
  const endpoint = `https://${HOSTS.s3OverHttp2}`;
  const said = await world.run([process.execPath, join(PROGRAMS, 's3_sdk_http2.mjs'), endpoint, 'bucket'], { env });
  expect(said).toBe('a report\n');
}

const placeholders = 'without a key: svc gives it placeholder keys, which the proxy replaces';

export const AWS_CLIENTS: readonly MatrixClient[] = [
  {
    name: 'boto3',
    probe: `${PYTHON} -c 'import boto3'`,
    packages: 'python3-boto3',
    sets: [PROXY, 'AWS_CA_BUNDLE'],
    tried: 'S3: put, list, get, multipart upload and download of 20 MiB, delete of several',
    note: placeholders,
    works: true,
    service: 's3',
    use: useBoto3,
  },
  {
    name: 'AWS CLI',
    probe: `${AWS} --version`,
    packages: 'awscli',
    sets: [PROXY, 'AWS_CA_BUNDLE'],
    tried: 'S3: cp of 20 MiB up and down, ls, rm',
    note: placeholders,
    works: true,
    service: 's3',
    use: useAwsCli,
  },
  {
    name: 'AWS SDK for JavaScript (@aws-sdk/client-s3)',
    probe: 'true',
    packages: null,
    sets: [PROXY, 'NODE_EXTRA_CA_CERTS'],
    tried: 'S3: multipart upload of 64 MiB, a stream with the default checksum trailer, get, delete',
    note: `${placeholders}, and \`requestHandler: { httpsAgent: new Agent({ proxyEnv: process.env }) }\``,
    works: true,
    service: 's3',
    use: useSdk,
  },
  {
    name: 'AWS SDK for JavaScript, HTTP/2',
    probe: 'true',
    packages: null,
    sets: [PROXY, 'NODE_EXTRA_CA_CERTS'],
    tried: 'S3: put, get, by its `NodeHttp2Handler`',
    note: `${placeholders}, and \`nodeHttp2ConnectOptions: { createConnection }\`, which has to open the tunnel: over HTTP/2 it knows no proxy`,
    works: true,
    service: 's3OverHttp2',
    use: useSdkOverHttp2,
  },
];
