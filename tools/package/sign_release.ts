import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** In the form that `sha256sum --check` reads. */
export const CHECKSUMS = 'SHA256SUMS';
export const SIGNATURE = `${CHECKSUMS}.sig`;
/** What a signature is for. One that the same key made for something else, such as a commit, is not one of a release. */
const NAMESPACE = 'svc-release';

/** A public key as OpenSSH writes it: no quote and no line break, so it can stand in a script and in a list of signers. */
const PUBLIC_KEY = /^(?:ssh-[a-z0-9-]+|sk-[a-z0-9-]+@openssh\.com|ecdsa-[a-z0-9-]+) [A-Za-z0-9+/]+={0,2}$/;

/** The public key, without its comment, of a private key's file; or of a public key's file, whose private part an agent or a token has. */
export function publicKeyOf(keyFile: string): string {
  const text = keyFile.endsWith('.pub')
    ? readFileSync(keyFile, 'utf8')
    : execFileSync('ssh-keygen', ['-y', '-f', keyFile], { encoding: 'utf8', stdio: ['inherit', 'pipe', 'inherit'] });
  const key = text.trim().split(/\s+/).slice(0, 2).join(' ');
  if (!PUBLIC_KEY.test(key)) throw new Error(`'${keyFile}' is no key of OpenSSH: make one with ssh-keygen -t ed25519`);
  return key;
}

/** Signs the checksums, and by them every file that they name. */
export function signChecksums(keyFile: string, out: string): string {
  rmSync(join(out, SIGNATURE), { force: true });
  execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-n', NAMESPACE, '-f', keyFile, join(out, CHECKSUMS)], {
    stdio: ['inherit', 'ignore', 'inherit'],
  });
  return SIGNATURE;
}
