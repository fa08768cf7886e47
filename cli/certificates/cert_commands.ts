import { Option } from 'commander';
import type { CertificateAndKey } from '../../machine/client_certificate.ts';
import { EFFECTS } from '../../shared/model/host_binding.ts';
import {
  formatVaultReference,
  parseOwnVaultPath,
  parseVaultReference,
  VAULT_SCHEME,
} from '../../shared/model/vault_path.ts';
import { normaliseHostOnPort } from '../../shared/net/host.ts';
import { clientCertificateRecord, type ClientCertificateRecord } from '../../shared/wire/hosts/client_certificates.ts';
import { secretRecord } from '../../shared/wire/secrets.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { requireOutside } from '../launch/hosts/allow_command.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { homeOf } from '../up/home.ts';
import { certificatePlace } from './certificate_place.ts';
import { type KnownCertificate, listClientCertificates, renewal, withSecrets } from './client_certificates.ts';
import { type CertificateFiles, readCertificate } from './read_certificate.ts';

const MAY_NOT = 'which may not change what it authenticates with';

interface AddOptions extends CertificateFiles {
  readonly credential?: string;
  readonly effect?: string;
  readonly http2?: boolean;
}

/** `svc cert ...`. */
export function addCertCommands(line: CommandLine): void {
  const cert = line.program
    .command('cert')
    .description('present client certificates (mTLS) to hosts; the agent sees neither certificate nor key');
  const add = cert
    .command('add')
    .description('store a client certificate with its key, and present it to a host; replaces the one that it has')
    .argument('<host>', 'exact host, with its port if that is not 443')
    .option('--cert <file>', 'PEM file of the certificate and its chain')
    .option('--key <file>', 'PEM file of the private key; by default the file of --cert')
    .option('--pkcs12 <file>', 'PKCS#12 file (.p12, .pfx) of both')
    .option('--credential <reference>', 'a stored secret that has both, such as vault://user/certificate')
    .addOption(
      new Option('--effect <effect>', 'what requests may do; read allows only GET, HEAD and OPTIONS').choices(EFFECTS),
    )
    .option('--http2', 'speak HTTP/2 with the host for programs that offer both versions')
    .option('--no-http2', 'speak HTTP/1.1 for these')
    .option('--stdin', 'read the passphrase from stdin; by default it is asked for without echo');
  handle<AddOptions>(line, add, addCertificate);
  const list = cert
    .command('list')
    .alias('ls')
    .description('list your client certificates and when they end, without their keys');
  handle<object>(line, list, listCertificates);
  const remove = cert
    .command('rm')
    .description('withdraw the client certificate of a host; its connections end at once')
    .argument('<host>');
  handle<object>(line, remove, removeCertificate);
}

async function addCertificate(call: Call<AddOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const host = hostOf(call);
  requireOutside(call, homeOf(context, options), MAY_NOT);
  const wanted = credentialOf(options);
  const client = controlClient(context, options);
  const before = (await listOrRefuse(client)).find((record) => record.host === host);
  const given = wanted === null ? await readCertificate(call) : null;
  const reference = given === null ? (wanted ?? before?.credential_ref) : formatVaultReference(certificatePlace(host));
  if (reference === undefined) {
    throw new CliError(EXIT.usage, 'no certificate was given: write --cert FILE --key FILE, or --pkcs12 FILE');
  }
  if (given !== null) await storeCertificate(client, host, given);
  const record = await present(client, { host, reference, before, options });
  const [known] = await withSecrets(client, [record]);
  const until = known?.expiresAt ?? null;
  print.data({ ...record, ...(until !== null && { expires_at: until }) }, () =>
    print.person
      ? `presented to ${host}: ${record.credential_ref}${until === null ? '' : `, valid until ${until}`}\n`
      : `${record.id}\n`,
  );
  if (known?.isStored === false) print.warn(`${reference} is not stored yet: ${renewal(host)}`);
  print.note('It opens upstream connections for requests that a binding, a connector or passthrough allows there.');
  if (/:\d+$/.test(host)) {
    print.note(`Requests to another port than 443 need a binding or a connector of ${host}, or: svc allow ${host}`);
  }
}

async function storeCertificate(client: HttpClient, host: string, given: CertificateAndKey): Promise<void> {
  const body = {
    path: certificatePlace(host),
    value: `${given.chain}${given.key.reveal()}`,
    description: `Client certificate of ${host}`,
    expires_at: new Date(given.notAfter).toISOString(),
  };
  await client.call('POST', '/v1/secrets', secretRecord, { body });
}

/** Writes the record of a host if it is another one. What is not given stays as it was. */
async function present(
  client: HttpClient,
  wanted: {
    readonly host: string;
    readonly reference: string;
    readonly before: ClientCertificateRecord | undefined;
    readonly options: AddOptions;
  },
): Promise<ClientCertificateRecord> {
  const { host, reference, before, options } = wanted;
  const effect = options.effect ?? before?.effect;
  const http2 = options.http2 ?? before?.http2 === true;
  const isSame = before?.credential_ref === reference && before.effect === effect && (before.http2 === true) === http2;
  if (isSame) return before;
  const body = {
    host,
    credential_ref: reference,
    ...(effect !== undefined && { effect }),
    ...(http2 && { http2: true }),
  };
  return client.call('POST', '/v1/client-certificates', clientCertificateRecord, { body });
}

async function listCertificates({ context, options, print }: Call<object>): Promise<undefined> {
  const client = controlClient(context, options);
  const known = await withSecrets(client, await listOrRefuse(client));
  const items = known.map(({ record, expiresAt }) => ({
    ...record,
    ...(expiresAt !== null && { expires_at: expiresAt }),
  }));
  print.rows(
    { items },
    known,
    [
      { title: 'HOST', cell: ({ record }: KnownCertificate) => record.host },
      { title: 'CREDENTIAL', cell: ({ record }: KnownCertificate) => record.credential_ref },
      { title: 'EFFECT', cell: ({ record }: KnownCertificate) => record.effect ?? '' },
      { title: 'HTTP', cell: ({ record }: KnownCertificate) => (record.http2 === true ? '2' : '') },
      { title: 'VALID UNTIL', cell: (row: KnownCertificate) => endText(row, context.now()) },
    ],
    `No client certificates yet: ${renewal('HOST')}`,
  );
}

function endText({ isStored, expiresAt }: KnownCertificate, now: number): string {
  if (!isStored) return 'not stored';
  if (expiresAt === null) return 'unknown';
  return Date.parse(expiresAt) <= now ? `${expiresAt} (expired)` : expiresAt;
}

async function removeCertificate(call: Call<object>): Promise<undefined> {
  const { context, options, print } = call;
  const host = hostOf(call);
  requireOutside(call, homeOf(context, options), MAY_NOT);
  const client = controlClient(context, options);
  const all = await listOrRefuse(client);
  const found = all.find((record) => record.host === host);
  if (found === undefined) {
    throw new CliError(EXIT.failed, `${host} has no client certificate`, ['`svc cert list` shows them.']);
  }
  await client.callEmpty('DELETE', `/v1/client-certificates/${found.id}`);
  if (print.person || print.json) print.data({ deleted: found.id }, () => `no longer presented to ${host}\n`);
  const others = all.filter((each) => each !== found && each.credential_ref === found.credential_ref);
  if (others.length > 0) {
    print.note(`It is still presented to ${others.map((each) => each.host).join(', ')}.`);
    return;
  }
  print.note(`Its key stays in the vault: svc secret rm ${found.credential_ref.slice(VAULT_SCHEME.length)}`);
}

async function listOrRefuse(client: HttpClient): Promise<ClientCertificateRecord[]> {
  const records = await listClientCertificates(client);
  if (records !== null) return records;
  throw new CliError(EXIT.failed, `the control plane at ${client.origin} does not know client certificates`, [
    'It has an earlier version than this svc (`svc status`): update it.',
  ]);
}

function hostOf({ args }: Pick<Call<object>, 'args'>): string {
  const host = normaliseHostOnPort(args[0] ?? '');
  if (!host.ok) throw new CliError(EXIT.usage, `the host ${host.error.message}`);
  return host.value;
}

/** The reference of `--credential`, which is given instead of files; null without it. */
function credentialOf({ cert, key, pkcs12, credential }: AddOptions): string | null {
  if ([cert ?? key, pkcs12, credential].filter((each) => each !== undefined).length > 1) {
    throw new CliError(EXIT.usage, 'give either --cert and --key, --pkcs12 or --credential');
  }
  if (credential === undefined) return null;
  const path = credential.startsWith(VAULT_SCHEME) ? parseVaultReference(credential) : parseOwnVaultPath(credential);
  if (!path.ok) throw new CliError(EXIT.usage, `--credential: ${path.error.message}`);
  return formatVaultReference(path.value);
}
