import { Option } from 'commander';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type CertificateAndKey, hasEncryptedKey, readCertificateAndKey } from '../../machine/client_certificate.ts';
import { EFFECTS } from '../../shared/model/host_binding.ts';
import { formatVaultReference, parseOwnVaultPath } from '../../shared/model/vault_path.ts';
import { normaliseHostOnPort } from '../../shared/net/host.ts';
import {
  clientCertificateRecord,
  clientCertificatesPage,
  type ClientCertificateRecord,
} from '../../shared/wire/hosts/client_certificates.ts';
import { secretRecord } from '../../shared/wire/secrets.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { requireOutside } from '../launch/hosts/allow_command.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { promptHidden, readSecret } from '../terminal/read_secret.ts';
import { unreadableFile } from '../terminal/unreadable_file.ts';
import { homeOf } from '../up/home.ts';

const MAY_NOT = 'which may not change what it authenticates with';

interface AddOptions {
  readonly cert?: string;
  readonly key?: string;
  readonly pkcs12?: string;
  readonly credential?: string;
  readonly effect?: string;
  readonly http2?: boolean;
  readonly stdin?: boolean;
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
  const list = cert.command('list').alias('ls').description('list your client certificates, without their keys');
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
  const client = controlClient(context, options);
  const before = (await listAll(client)).find((record) => record.host === host);
  const given = await readGiven(call);
  const path = `user/client-certificates/${host.replaceAll(/[^a-z0-9.-]/g, '-')}`;
  const reference = options.credential ?? (given === null ? before?.credential_ref : formatVaultReference(path));
  if (reference === undefined) {
    throw new CliError(EXIT.usage, 'no certificate was given: write --cert FILE --key FILE, or --pkcs12 FILE');
  }
  if (given !== null) {
    const value = `${given.chain}${given.key.reveal()}`;
    const description = `Client certificate of ${host}`;
    await client.call('POST', '/v1/secrets', secretRecord, { body: { path, value, description } });
  }
  const effect = options.effect ?? before?.effect;
  const http2 = options.http2 ?? before?.http2 === true;
  const isSame = before?.credential_ref === reference && before.effect === effect && (before.http2 === true) === http2;
  if (before !== undefined && !isSame) await client.callEmpty('DELETE', `/v1/client-certificates/${before.id}`);
  const body = {
    host,
    credential_ref: reference,
    ...(effect !== undefined && { effect }),
    ...(http2 && { http2: true }),
  };
  const record = isSame
    ? before
    : await client.call('POST', '/v1/client-certificates', clientCertificateRecord, { body });
  const until = given === null ? '' : `, valid until ${new Date(given.notAfter).toISOString()}`;
  print.data(record, () =>
    print.person ? `presented to ${record.host}: ${record.credential_ref}${until}\n` : `${record.id}\n`,
  );
  print.note('It opens upstream connections for requests that a binding, a connector or passthrough allows there.');
}

async function listCertificates({ context, options, print }: Call<object>): Promise<undefined> {
  const items = await listAll(controlClient(context, options));
  print.rows(
    { items },
    items,
    [
      { title: 'HOST', cell: (row: ClientCertificateRecord) => row.host },
      { title: 'CREDENTIAL', cell: (row: ClientCertificateRecord) => row.credential_ref },
      { title: 'EFFECT', cell: (row: ClientCertificateRecord) => row.effect ?? '' },
    ],
    'No client certificates yet: svc cert add HOST --cert FILE --key FILE',
  );
}

async function removeCertificate(call: Call<object>): Promise<undefined> {
  const { context, options, print } = call;
  const host = hostOf(call);
  requireOutside(call, homeOf(context, options), MAY_NOT);
  const client = controlClient(context, options);
  const found = (await listAll(client)).find((record) => record.host === host);
  if (found === undefined) {
    throw new CliError(EXIT.failed, `${host} has no client certificate`, ['`svc cert list` shows them.']);
  }
  await client.callEmpty('DELETE', `/v1/client-certificates/${found.id}`);
  if (print.person || print.json) print.data({ deleted: found.id }, () => `no longer presented to ${host}\n`);
  print.note(`Its key stays in the vault: svc secret rm ${found.credential_ref.replace('vault://', '')}`);
}

function listAll(client: HttpClient): Promise<ClientCertificateRecord[]> {
  return fetchAllPages(client, '/v1/client-certificates', clientCertificatesPage, {});
}

function hostOf({ args }: Pick<Call<object>, 'args'>): string {
  const host = normaliseHostOnPort(args[0] ?? '');
  if (!host.ok) throw new CliError(EXIT.usage, `the host ${host.error.message}`);
  return host.value;
}

/** The certificate and key of the options, checked; null if they give none. */
async function readGiven(call: Call<AddOptions>): Promise<CertificateAndKey | null> {
  const { cert, key, pkcs12, credential } = call.options;
  if ([cert ?? key, pkcs12, credential].filter((each) => each !== undefined).length > 1) {
    throw new CliError(EXIT.usage, 'give either --cert and --key, --pkcs12 or --credential');
  }
  if (credential !== undefined) {
    const path = parseOwnVaultPath(credential.replace(/^vault:\/\//, ''));
    if (!path.ok) throw new CliError(EXIT.usage, `--credential ${path.error.message}`);
    return null;
  }
  if (pkcs12 !== undefined) return checked(await readPfx(call, pkcs12), `the file ${pkcs12}`);
  if (cert === undefined && key === undefined) return null;
  if (cert === undefined) throw new CliError(EXIT.usage, '--key was given without --cert');
  const text = [cert, ...(key === undefined ? [] : [key])]
    .map((file) => fileOf(call, file).toString('utf8'))
    .join('\n');
  const passphrase = hasEncryptedKey(text) ? await passphraseOf(call) : undefined;
  return checked(
    readCertificateAndKey(text, passphrase),
    key === undefined ? `the file ${cert}` : `${cert} with ${key}`,
  );
}

async function readPfx(call: Call<AddOptions>, file: string): Promise<ReturnType<typeof readCertificateAndKey>> {
  const bytes = fileOf(call, file);
  const { readPkcs12 } = await import('../../sandbox/relay/read_pkcs12.ts');
  const text = readPkcs12(bytes, await passphraseOf(call));
  return text.ok ? readCertificateAndKey(text.value) : text;
}

/** Refuses what no host would accept, before anything is stored. */
function checked(read: ReturnType<typeof readCertificateAndKey>, what: string): CertificateAndKey {
  if (!read.ok) throw new CliError(EXIT.usage, `${what} ${read.error}: nothing was stored`);
  const { notAfter } = read.value;
  if (Date.now() >= notAfter) {
    const when = new Date(notAfter).toISOString();
    throw new CliError(EXIT.usage, `${what} has a certificate that expired on ${when}: nothing was stored`);
  }
  return read.value;
}

/** Empty for a file without one. */
async function passphraseOf({ context, options }: Call<AddOptions>): Promise<string> {
  if (options.stdin === true && !context.interactive) return readSecret(context, { stdin: true });
  if (context.interactive) return promptHidden(context.stdin, context.stderr, 'Passphrase (not shown): ');
  throw new CliError(
    EXIT.usage,
    'stdin is not a terminal, so the passphrase cannot be asked for: pipe it in (--stdin)',
  );
}

function fileOf({ context }: Call<AddOptions>, file: string): Buffer {
  try {
    return readFileSync(resolve(context.workingDirectory, file));
  } catch (error) {
    throw unreadableFile(file, error, EXIT.usage);
  }
}
