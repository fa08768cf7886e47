import { join } from 'node:path';
import { cachedInstall, folderOfInstall } from './cached_install.ts';
import { ROOT } from './program.ts';
import { verifySigV4 } from './sigv4_verifier.ts';
import type { Svc } from './svc.ts';
import { type Handler, reply, type TlsUpstream } from './tls_upstream.ts';

// The SDKs of clouds with nothing but what svc puts into their environment: no key, no file, an empty home.

const FROM = join(ROOT, 'e2e', 'matrix', 'cloud_clients');
const INSTALL = { name: 'cloud-clients', from: FROM };
export const CLOUD_PROGRAMS = join(ROOT, 'e2e', 'matrix', 'programs');
export const CLOUD_HOSTS = {
  aws: 's3.eu-north-1.amazonaws.com',
  google: 'items.googleapis.com',
  azure: 'items.vault.azure.net',
} as const;
const ACCESS_KEY_ID = 'AKIAE2ECLOUDS0000001';
const XML = ['Content-Type: application/xml'];
const BUCKETS = '<?xml version="1.0"?><ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>';

/** The folder with the packages of Google and Azure for Node; null if they are missing and the tests may not install. */
export function installCloudClients(): Promise<string | null> {
  return cachedInstall(INSTALL);
}

export const CLOUD_PACKAGES = folderOfInstall(INSTALL);

/** What only svc holds. */
export interface CloudSecrets {
  readonly aws: string;
  readonly google: string;
  readonly azure: string;
}

export async function bindClouds(svc: Svc, upstream: TlsUpstream, secrets: CloudSecrets): Promise<void> {
  for (const [name, value] of Object.entries(secrets)) await svc.secret(`user/${name}`, value);
  const { aws, google, azure } = CLOUD_HOSTS;
  const signing = { scheme: 'sigv4-resign', access_key_id: ACCESS_KEY_ID, region: 'eu-north-1', service: 's3' };
  await svc.binding({ host: aws, ...signing, credential_ref: 'vault://user/aws' });
  await svc.binding({ host: google, scheme: 'bearer', credential_ref: 'vault://user/google' });
  await svc.binding({ host: azure, scheme: 'bearer', credential_ref: 'vault://user/azure' });
  upstream.onRequest(answerClouds);
}

/** Binds the same hosts to secrets that are minted: `vault://ci/aws`, `google` and `azure`. */
export async function bindMintedClouds(svc: Svc, upstream: TlsUpstream): Promise<void> {
  const { aws, google, azure } = CLOUD_HOSTS;
  const signing = { scheme: 'sigv4-resign', access_key_id: 'minted', region: 'eu-north-1', service: 's3' };
  await svc.binding({ host: aws, ...signing, credential_ref: 'vault://ci/aws' });
  await svc.binding({ host: google, scheme: 'bearer', credential_ref: 'vault://ci/google' });
  await svc.binding({ host: azure, scheme: 'bearer', credential_ref: 'vault://ci/azure' });
  upstream.onRequest(answerClouds);
}

/** What the hosts answer: no bucket, and no item. At `/reflect`, the credential that they got. */
const answerClouds: Handler = async (exchange) => {
  await exchange.readBody();
  const { request } = exchange;
  const sent = ['authorization', 'x-amz-security-token'].flatMap((name) => request.headers(name));
  if (request.target === '/reflect') exchange.write(reply(200, `${sent.join(' ')}\n`, [`X-Sent: ${sent.join(' ')}`]));
  else if (request.serverName === CLOUD_HOSTS.aws) exchange.write(reply(200, BUCKETS, XML));
  else exchange.write(reply(200, '{}'));
};

/** A shell script that runs the AWS CLI and the libraries for Node, where their programs and packages are at these paths. */
export function cloudScript(programs: string, packages: string): string {
  const { aws, google, azure } = CLOUD_HOSTS;
  return [
    'set -e',
    'export AWS_EC2_METADATA_DISABLED=true AWS_MAX_ATTEMPTS=1 AWS_PAGER= AWS_REGION=us-east-1',
    `aws s3api list-buckets --endpoint-url https://${aws} --query 'length(Buckets || \`[]\`)' --output text`,
    `node ${programs}/items_google.mjs https://${google}/items ${packages}`,
    `node ${programs}/items_azure.mjs https://${azure}/items ${packages}`,
  ].join('\n');
}

/** The same for boto3, the AWS SDK for JavaScript and google-auth for Python. `python` has the libraries of Python. */
export function moreCloudsScript(programs: string, python: string): string {
  const { aws, google } = CLOUD_HOSTS;
  return [
    `PYTHONPATH=${python} python3 ${programs}/buckets_boto3.py https://${aws}`,
    `node ${programs}/buckets_sdk.mjs https://${aws}`,
    `PYTHONPATH=${python} python3 ${programs}/items_google.py https://${google}/items`,
  ].join('\n');
}

export const MORE_CLOUDS_SAID = '[]\n[]\ngoogle.auth.compute_engine.credentials 200 200\n';

export const CLOUDS_SAID = '0\nCompute 200 200\n200 200\n';

/** The credentials of all requests that the clouds got, in order. */
export function seenByClouds(upstream: TlsUpstream, secrets: CloudSecrets): readonly unknown[] {
  const keys = new Map([[ACCESS_KEY_ID, secrets.aws]]);
  return upstream.requests.map(({ method, target, serverName, body, ...request }) => {
    if (serverName !== CLOUD_HOSTS.aws) return [serverName, ...request.headers('authorization')];
    const headers = (name: string): string[] => request.headers(name);
    return [serverName, verifySigV4({ method, target, headers, body: body.data }, keys, Date.now()).ok];
  });
}

/** What {@link seenByClouds} is when every request had its credential. */
export function expectedByClouds({ google, azure }: CloudSecrets): readonly unknown[] {
  const toGoogle = [CLOUD_HOSTS.google, `Bearer ${google}`];
  const toAzure = [CLOUD_HOSTS.azure, `Bearer ${azure}`];
  return [[CLOUD_HOSTS.aws, true], toGoogle, toGoogle, toAzure, toAzure];
}
