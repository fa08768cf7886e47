import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { errorCode, SYSTEM_REASONS } from '../../shared/model/error_code.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';

/** A release whose list of checksums has the signature of a key. */
export interface SignedRelease {
  /** An address without a slash at the end, or an absolute folder. */
  readonly from: string;
  readonly isFolder: boolean;
  readonly changelog: string;
  /** The SHA-256, in hex, of each file by its name. */
  readonly checksums: ReadonlyMap<string, string>;
}

/** A changelog of many years, and far more than a list of checksums. */
const MAX_BYTES = 4 * 1024 * 1024;
const SUMS = 'SHA256SUMS';
/** As in tools/package/sign_release.ts and the install script. */
const NAMESPACE = 'svc-release';

/**
 * Reads what a release says of itself: its changelog and checksums. It believes nothing that the key has not signed, and fetches no
 * program.
 */
export async function readSignedRelease(context: CliContext, text: string, signer: string): Promise<SignedRelease> {
  const place = parsePlace(context, text);
  const read = (name: string): Promise<Buffer> => readFile(context, place, name);
  const [sums, signature] = [await read(SUMS), await read(`${SUMS}.sig`)];
  await checkSignature(place.from, sums, signature, signer);
  const checksums = new Map<string, string>();
  for (const line of sums.toString('utf8').split('\n')) {
    const [, sum, name] = /^([0-9a-f]{64}) {2}([\w.-]{1,200})$/.exec(line) ?? [];
    if (sum !== undefined && name !== undefined) checksums.set(name, sum);
  }
  const changelog = await read('CHANGELOG.md');
  if (createHash('sha256').update(changelog).digest('hex') !== checksums.get('CHANGELOG.md')) {
    throw new CliError(
      EXIT.failed,
      `CHANGELOG.md in ${place.from} has another checksum than the signed one`,
      UNTRUSTED,
    );
  }
  return { ...place, changelog: changelog.toString('utf8'), checksums };
}

const UNTRUSTED = ['Take nothing from there: what it serves is not what was released.'];

interface Place {
  readonly from: string;
  readonly isFolder: boolean;
}

function parsePlace({ workingDirectory }: CliContext, text: string): Place {
  if (text === '') throw new CliError(EXIT.usage, '--from is empty: give the address or the folder of a release');
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return { from: resolve(workingDirectory, text), isFolder: true };
  const url = URL.parse(text);
  const isUsable =
    url !== null && ['https:', 'http:'].includes(url.protocol) && url.username === '' && url.password === '';
  if (!isUsable || url.search !== '' || url.hash !== '') {
    const shape = 'an http or https address without a user, a query and a fragment, or a folder';
    throw new CliError(EXIT.usage, `the address of --from cannot be used: give ${shape}`);
  }
  return { from: url.href.replace(/\/$/, ''), isFolder: false };
}

async function readFile(context: CliContext, place: Place, name: string): Promise<Buffer> {
  if (!place.isFolder) return await download(context, `${place.from}/${name}`);
  try {
    return readFileSync(join(place.from, name));
  } catch (error) {
    const reason = SYSTEM_REASONS[errorCode(error)] ?? errorCode(error);
    throw new CliError(EXIT.failed, `${join(place.from, name)} cannot be read: ${reason}`, NO_RELEASE);
  }
}

const NO_RELEASE = [
  '--from takes the address or the folder of a release that was built with --sign (docs/install.md).',
];

async function download({ fetch }: CliContext, address: string): Promise<Buffer> {
  try {
    const signal = AbortSignal.timeout(30_000);
    const reply = await fetch(new URL(address), { method: 'GET', redirect: 'manual', signal, headers: {} });
    if (reply.status !== 200) throw new CliError(EXIT.failed, `${address} answered ${reply.status}`, NO_RELEASE);
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of reply.body ?? []) {
      bytes += piece.byteLength;
      if (bytes > MAX_BYTES)
        throw new CliError(EXIT.failed, `${address} is longer than ${MAX_BYTES} bytes`, NO_RELEASE);
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  } catch (error) {
    if (error instanceof CliError) throw error;
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new CliError(
      EXIT.unreachable,
      `${address} could not be read: ${cause instanceof Error ? cause.message : String(cause)}`,
    );
  }
}

/** Has OpenSSH check the signature, which may be of any kind that OpenSSH knows. */
async function checkSignature(from: string, sums: Buffer, signature: Buffer, signer: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-release-'));
  try {
    writeFileSync(join(folder, 'signers'), `svc namespaces="${NAMESPACE}" ${signer}\n`);
    writeFileSync(join(folder, 'signature'), signature);
    const args = ['-Y', 'verify', '-f', join(folder, 'signers'), '-I', 'svc', '-n', NAMESPACE];
    const problem = await verify([...args, '-s', join(folder, 'signature')], sums);
    if (problem === 'missing') {
      throw new CliError(EXIT.failed, 'ssh-keygen was not found, so the signature of the release cannot be checked', [
        'Install OpenSSH 8.1 or later (Debian: openssh-client).',
      ]);
    }
    if (problem !== null) {
      throw new CliError(
        EXIT.failed,
        `${SUMS} in ${from} does not have the signature of the key of this svc`,
        UNTRUSTED,
      );
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function verify(args: readonly string[], input: Buffer): Promise<'missing' | 'refused' | null> {
  return new Promise((done) => {
    const child = execFile('ssh-keygen', args, (error) => {
      if (error === null) done(null);
      else done(errorCode(error) === 'ENOENT' ? 'missing' : 'refused');
    });
    // ssh-keygen may end before it has read everything; its exit status says what it thinks.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}
