import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type CertificateAndKey, hasEncryptedKey, readCertificateAndKey } from '../../machine/client_certificate.ts';
import type { Result } from '../../shared/model/result.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { promptHidden, readSecret } from '../terminal/read_secret.ts';
import { unreadableFile } from '../terminal/unreadable_file.ts';

/** The options of `svc cert add` that give a certificate. */
export interface CertificateFiles {
  readonly cert?: string;
  readonly key?: string;
  readonly pkcs12?: string;
  readonly stdin?: boolean;
}

type FileCall = Call<CertificateFiles>;

/** The certificate and key of the options, checked before anything is stored; null if they give none. */
export async function readCertificate(call: FileCall): Promise<CertificateAndKey | null> {
  const { cert, key, pkcs12 } = call.options;
  if (pkcs12 !== undefined) return checked(call, await readPkcs12File(call, pkcs12), pkcs12, []);
  if (cert === undefined && key === undefined) return null;
  if (cert === undefined) throw new CliError(EXIT.usage, '--key was given without --cert: give the certificate too');
  const certText = fileOf(call, cert).toString('utf8');
  const text = key === undefined ? certText : `${certText}\n${fileOf(call, key).toString('utf8')}`;
  const passphrase = hasEncryptedKey(text) ? await passphraseOf(call, key ?? cert) : undefined;
  const what = key === undefined ? cert : `${cert} with ${key}`;
  return checked(call, readCertificateAndKey(text, passphrase), what, fixesOf(text, call.options));
}

/** How to give what the files lack. */
function fixesOf(text: string, { key }: CertificateFiles): readonly string[] {
  if (!text.includes('-----BEGIN CERTIFICATE-----')) {
    return [
      'A .p12 or .pfx file is given with --pkcs12 FILE.',
      'A certificate in DER becomes PEM with: openssl x509 -inform der -in FILE -out FILE.pem',
    ];
  }
  if (text.includes('PRIVATE KEY-----')) return [];
  return [
    key === undefined
      ? 'Name the file of its private key: --key FILE.'
      : 'A key in DER becomes PEM with: openssl pkey -inform der -in FILE -out FILE.pem',
  ];
}

/** Asks for the passphrase only if the file has one. */
async function readPkcs12File(call: FileCall, file: string): Promise<Result<CertificateAndKey, string>> {
  const bytes = fileOf(call, file);
  const { readPkcs12, WRONG_PASSPHRASE } = await import('../../sandbox/relay/read_pkcs12.ts');
  const open = readPkcs12(bytes, '');
  const isLocked = !open.ok && open.error === WRONG_PASSPHRASE;
  const text = isLocked ? readPkcs12(bytes, await passphraseOf(call, file)) : open;
  return text.ok ? readCertificateAndKey(text.value) : text;
}

/** Refuses what no host would accept. */
function checked(
  { context, print }: FileCall,
  read: Result<CertificateAndKey, string>,
  what: string,
  fixes: readonly string[],
): CertificateAndKey {
  if (!read.ok) throw new CliError(EXIT.usage, `${what} ${read.error}: nothing was stored`, fixes);
  const { notBefore, notAfter } = read.value;
  const now = context.now();
  if (now >= notAfter) {
    const when = new Date(notAfter).toISOString();
    throw new CliError(EXIT.usage, `${what} has a certificate that expired on ${when}: nothing was stored`, [
      'Give the renewed one.',
    ]);
  }
  if (now < notBefore) {
    print.warn(`${what} has a certificate that is not valid before ${new Date(notBefore).toISOString()}`);
  }
  return read.value;
}

async function passphraseOf({ context, options }: FileCall, file: string): Promise<string> {
  if (options.stdin === true && !context.interactive) return readSecret(context, { stdin: true });
  if (context.interactive) return promptHidden(context.stdin, context.stderr, `Passphrase of ${file} (not shown): `);
  throw new CliError(EXIT.usage, `${file} has a passphrase, and stdin is not a terminal, so it cannot be asked for`, [
    'Pipe it in: printf %s "$PASSPHRASE" | svc cert add ... --stdin',
  ]);
}

function fileOf({ context }: FileCall, file: string): Buffer {
  try {
    return readFileSync(resolve(context.workingDirectory, file));
  } catch (error) {
    throw unreadableFile(file, error, EXIT.usage);
  }
}
