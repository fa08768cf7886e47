import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answering, run, until } from '../runtimes/programs.ts';
import type { SamlKey } from '../sign_in/saml_samples.ts';
import { freePort } from '../support/free_port.ts';
import { succeeds } from '../../tools/system_parts.mjs';

export const IDP_HOST = 'idp.acme.test';
/** Its metadata; also its entity id. */
export const IDP_METADATA = `https://${IDP_HOST}/saml2/idp/metadata.php`;
const PAGES = '/usr/share/simplesamlphp/www';

/** Why SimpleSAMLphp cannot be run; null if it can. */
export function simpleSamlPhpProblem(): string | null {
  return succeeds(`php --version && test -d ${PAGES}`)
    ? null
    : 'SimpleSAMLphp is not here: apt-get install --no-install-recommends php-cgi php-cli php-xml nginx-light simplesamlphp';
}

/** An account at the provider: its password, and what the provider knows about it. */
interface Account {
  readonly password: string;
  readonly attributes: Readonly<Record<string, readonly string[]>>;
}

/** What the administrator of the provider sets, under the names of SimpleSAMLphp. */
interface ProviderSettings {
  readonly accounts: Readonly<Record<string, Account>>;
  /** Of the provider (`saml20-idp-hosted`). */
  readonly idp: Readonly<Record<string, unknown>>;
  /** Of the service (`saml20-sp-remote`), in addition to what its metadata say. */
  readonly sp: Readonly<Record<string, unknown>>;
}

/** SimpleSAMLphp as an identity provider, with its own configuration, behind a TLS proxy. */
export interface SimpleSamlPhp {
  readonly loopback: string;
  configure(settings: ProviderSettings): Promise<void>;
  /** Signs with the first key; its metadata list both. */
  useKeys(current: SamlKey, next?: SamlKey): Promise<void>;
  /** Gives it the metadata of the service. */
  importMetadata(xml: string): Promise<void>;
  stop(): Promise<void>;
}

const READ_SETTINGS = `$settings = json_decode(file_get_contents(__DIR__ . '/settings.json'), true);`;

const secret = () => randomBytes(16).toString('hex');
const pem = (kind: string, base64: string) => `-----BEGIN ${kind}-----\n${base64}\n-----END ${kind}-----\n`;

/** PHP, by file. */
function configuration(folder: string): Readonly<Record<string, string>> {
  return {
    'config.php': `$config = [
  'baseurlpath' => 'https://${IDP_HOST}/',
  'certdir' => '${folder}/cert/',
  'loggingdir' => '${folder}/log/',
  'datadir' => '${folder}/data/',
  'tempdir' => '${folder}/tmp',
  'secretsalt' => '${secret()}',
  'auth.adminpassword' => '${secret()}',
  'timezone' => 'UTC',
  'logging.handler' => 'stderr',
  'enable.saml20-idp' => true,
  'module.enable' => ['exampleauth' => true, 'core' => true, 'saml' => true],
  'store.type' => 'phpsession',
  'session.phpsession.savepath' => '${folder}/sessions',
  'session.cookie.secure' => true,
  'session.cookie.samesite' => 'None',
  'session.phpsession.httponly' => true,
  'metadata.sources' => [['type' => 'flatfile', 'directory' => '${folder}/metadata']],
];`,
    'authsources.php': `${READ_SETTINGS}
$config = ['accounts' => ['exampleauth:UserPass']];
foreach ($settings['accounts'] as $name => $account) {
  $config['accounts'][$name . ':' . $account['password']] = $account['attributes'];
}`,
    'metadata/saml20-idp-hosted.php': `${READ_SETTINGS.replace('__DIR__', 'dirname(__DIR__)')}
$metadata['${IDP_METADATA}'] = $settings['idp'] + [
  'host' => '__DEFAULT__',
  'privatekey' => 'current.pem',
  'certificate' => 'current.crt',
  'auth' => 'accounts',
  'authproc' => [10 => ['class' => 'saml:PersistentNameID', 'attribute' => 'uid']],
] + (is_file('${folder}/cert/next.crt') ? ['new_privatekey' => 'next.pem', 'new_certificate' => 'next.crt'] : []);`,
    'metadata/saml20-sp-remote.php': `${READ_SETTINGS.replace('__DIR__', 'dirname(__DIR__)')}
if (is_file('${folder}/sp.xml')) {
  $sp = \\SimpleSAML\\Metadata\\SAMLParser::parseFile('${folder}/sp.xml')->getMetadata20SP();
  $metadata[$sp['entityid']] = $settings['sp'] + $sp;
}`,
  };
}

export async function startSimpleSamlPhp(): Promise<SimpleSamlPhp> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-saml-'));
  for (const name of ['cert', 'log', 'data', 'tmp', 'sessions', 'metadata']) await mkdir(join(folder, name));
  const files = Object.entries(configuration(folder));
  await Promise.all(files.map(([name, text]) => writeFile(join(folder, name), `<?php\n${text}\n`)));
  const writeKey = async (name: string, { privateKey, certificate }: SamlKey) => {
    await writeFile(join(folder, 'cert', `${name}.pem`), privateKey);
    await writeFile(join(folder, 'cert', `${name}.crt`), pem('CERTIFICATE', certificate));
  };
  const loopback = `http://127.0.0.1:${await freePort()}`;
  const flags = ['-d', 'display_errors=stderr', '-S', new URL(loopback).host, '-t', PAGES];
  const program = run('php', flags, { SIMPLESAMLPHP_CONFIG_DIR: folder });
  await until(program, answering(`${loopback}/resources/default.css`));
  return {
    loopback,
    configure: (settings) => writeFile(join(folder, 'settings.json'), JSON.stringify(settings)),
    async useKeys(current, next) {
      await writeKey('current', current);
      if (next === undefined) await rm(join(folder, 'cert/next.crt'), { force: true });
      else await writeKey('next', next);
    },
    importMetadata: (xml) => writeFile(join(folder, 'sp.xml'), xml),
    async stop() {
      await program.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
