import { open } from 'node:fs/promises';
import { compactVerify, type CryptoKey, decodeJwt } from 'jose';
import { z } from 'zod';
import { sha256Hex } from '../../machine/sha256.ts';
import { ChainWalk, type WalkBreak } from '../../shared/audit/chain_walk.ts';
import { parseJson } from '../../shared/model/json.ts';
import { readAuditEvent } from '../../shared/wire/audit_events.ts';
import {
  AUDIT_STATEMENT_TYP,
  type AuditStatement,
  auditStatement,
  auditStatementReply,
} from '../../shared/wire/audit_heads.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { unreadableFile } from '../terminal/unreadable_file.ts';
import { pinnedKey, publicKey } from './control_plane_key.ts';
import { counted } from '../../shared/model/sentence.ts';

interface FileOptions {
  readonly file?: string;
  readonly key?: string;
}

const kinds = z.looseObject({ kind: z.string() });
const PUBLIC_KEY = /^[\w-]{43}$/;

/**
 * `svc audit verify --file`: checks an export without a control plane. The statement's signature is checked with `--key`, else
 * with the key that this machine's sidecar pinned, else with the key in the file, which proves only that nothing was changed by
 * somebody without that key.
 */
export async function verifyFile(call: Call<FileOptions>, file: string): Promise<number> {
  const { print } = call;
  let walk: ChainWalk | null = null;
  let statement: Trusted | null = null;
  let broken: WalkBreak | null = null;
  let lineNumber = 0;
  for await (const line of linesOf(file)) {
    lineNumber += 1;
    const record = kinds.safeParse(parseJson(line));
    if (!record.success) throw unreadable(file, lineNumber, 'is no JSON document of an export');
    const { kind, ...rest } = record.data;
    if (kind === 'audit_statement') {
      if (statement !== null) throw unreadable(file, lineNumber, 'is a second statement: check one export at a time');
      statement = await openStatement(call, file, rest);
      walk = new ChainWalk(statement.value.chains, sha256Hex);
    }
    if (kind !== 'audit_event') continue;
    if (walk === null) throw unreadable(file, lineNumber, 'is an event before the statement of svc audit export');
    const event = readAuditEvent.safeParse(rest);
    if (!event.success) throw unreadable(file, lineNumber, 'is no audit event');
    broken = walk.take(event.data);
    if (broken !== null) break;
  }
  if (walk === null || statement === null) {
    throw new CliError(EXIT.usage, `--file ${file}: the file has no signed statement; make one with svc audit export`);
  }
  broken ??= walk.finish();
  const { chains, taken_at: takenAt, control_plane_id: controlPlaneId, enterprise_id: enterpriseId } = statement.value;
  const value = {
    ok: broken === null,
    file,
    control_plane_id: controlPlaneId,
    enterprise_id: enterpriseId,
    taken_at: takenAt,
    key: statement.key,
    events: walk.events,
    removed: chains.reduce((total, { beginning }) => total + beginning.sequence, 0),
    chains: chains.length,
    first_break: broken,
  };
  if (statement.key === 'file') print.warn(KEY_OF_FILE);
  print.line(
    value,
    broken === null ? goodText(value) : `broken\t${broken.reason} at event ${broken.sequence} of ${broken.writer}`,
  );
  return value.ok ? EXIT.ok : EXIT.failed;
}

const KEY_OF_FILE =
  'the signature was checked with the key in the file: whoever wrote the file may have made that key. Give the key that you know with --key, or run this where a sidecar of that control plane is enrolled';

function goodText(value: {
  readonly events: number;
  readonly removed: number;
  readonly chains: number;
  readonly taken_at: string;
}): string {
  const pruned = value.removed === 0 ? '' : `; ${counted(value.removed, 'older one')} had been pruned`;
  return `ok: ${counted(value.events, 'event')} in ${counted(value.chains, 'chain')}, as of ${value.taken_at}${pruned}`;
}

interface Trusted {
  readonly value: AuditStatement;
  /** Where the key came from that verified it. */
  readonly key: 'given' | 'pinned' | 'file';
}

async function openStatement(call: Call<FileOptions>, file: string, record: unknown): Promise<Trusted> {
  const reply = auditStatementReply.safeParse(record);
  const claimed = reply.success ? auditStatement.safeParse(claimsOf(reply.data.signed)) : null;
  if (!reply.success || claimed?.success !== true) {
    throw new CliError(EXIT.failed, `--file ${file}: its statement cannot be read`);
  }
  const { key, from } = await keyFor(call, claimed.data.control_plane_id, reply.data.control_plane_key.x);
  try {
    const { protectedHeader } = await compactVerify(reply.data.signed, key, { algorithms: ['EdDSA', 'Ed25519'] });
    if (protectedHeader.typ === AUDIT_STATEMENT_TYP) return { value: claimed.data, key: from };
  } catch {
    // Told below, as a signature over something else is.
  }
  const whose = { given: 'the key of --key', pinned: 'the key that this machine pinned', file: 'the key in the file' };
  throw new CliError(EXIT.failed, `--file ${file}: its statement is not signed with ${whose[from]}`);
}

function claimsOf(token: string): unknown {
  try {
    return decodeJwt(token);
  } catch {
    return null;
  }
}

async function keyFor(
  call: Call<FileOptions>,
  controlPlaneId: string,
  inFile: string,
): Promise<{ readonly key: CryptoKey; readonly from: Trusted['key'] }> {
  const { key: given } = call.options;
  if (given !== undefined) return { key: await keyOrError('--key', given), from: 'given' };
  const pinned = await pinnedKey(call, controlPlaneId);
  if (pinned !== null) return { key: pinned, from: 'pinned' };
  return { key: await keyOrError('the key in the file', inFile), from: 'file' };
}

async function keyOrError(name: string, x: string): Promise<CryptoKey> {
  const key = PUBLIC_KEY.test(x) ? await publicKey(x) : null;
  if (key !== null) return key;
  throw new CliError(
    EXIT.usage,
    `${name} is no Ed25519 public key: 43 characters of base64url, the "x" of the control plane's key`,
  );
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const opened = await open(file).catch((error: unknown) => {
    throw unreadableFile(`--file ${file}`, error, EXIT.usage);
  });
  try {
    yield* opened.readLines({ autoClose: false });
  } finally {
    await opened.close();
  }
}

function unreadable(file: string, line: number, problem: string): CliError {
  return new CliError(EXIT.failed, `--file ${file}: line ${line} ${problem}`);
}
