import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { compactVerify, type CryptoKey, decodeProtectedHeader } from 'jose';
import {
  AUDIT_HEAD_TYP,
  type AuditHead,
  auditHeadsChecked,
  auditHeadsReply,
  type AuditHeadsReply,
  type ExportedHead,
  exportedHead,
  isGoodStanding,
  MAX_CHECKED_HEADS,
  type StoodHead,
} from '../../shared/wire/audit_heads.ts';
import { askYes } from '../terminal/ask.ts';
import { controlClient, sidecarClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { unreadableFile } from '../terminal/unreadable_file.ts';
import { pinnedKey, publicKey } from './control_plane_key.ts';
import type { HttpClient } from '../terminal/http_client.ts';
import { fetchSidecarHealth, type SidecarHealth } from '../up/status_command.ts';

/** `svc audit heads` and `svc audit accept`. */
export function addHeadsCommands(line: CommandLine, audit: Command): void {
  const heads = audit
    .command('heads')
    .description(
      'export the signed head of each chain; store it elsewhere and check it later with svc audit verify --against',
    );
  handle(line, heads, showHeads);
  const accept = audit
    .command('accept')
    .description("confirm that the control plane's audit log was rolled back, for example by a restore from a backup")
    .option('--yes', 'do not ask');
  handle<AcceptOptions>(line, accept, acceptMismatches);
}

const CALL_MS = 5 * 60_000;

async function showHeads(call: Call): Promise<undefined> {
  const client = controlClient(call.context, call.options);
  const reply = await client.call('GET', '/v1/audit-events/heads', auditHeadsReply, { timeoutMs: CALL_MS });
  call.print.data(reply, () => headsText(reply));
}

/** One line per head; its last column is the control plane's signature over the head. */
function headsText({ heads, taken_at: takenAt }: AuditHeadsReply): string {
  return heads
    .map(({ writer, sequence, hash, signed }) => `${takenAt}\t${writer}\t${sequence}\t${hash}\t${signed}\n`)
    .join('');
}

/** The result of comparing the log with an export. */
interface Compared {
  readonly value: {
    readonly ok: boolean;
    readonly file: string;
    readonly heads: readonly (StoodHead & { readonly taken_at: string })[];
    /** Number of signatures in the file that this control plane did not make. */
    readonly unsigned: number;
  };
  readonly text: string;
}

/**
 * Compares the log with every signed head in a file. The file may be one or more exports, or a program's log that contains
 * heads. Signatures are checked with the key that this machine's sidecar pinned; if none is pinned, with the key that the
 * control plane returns.
 */
export async function compareHeads(call: Call, client: HttpClient, file: string): Promise<Compared> {
  const tokens = findSignedHeads(readText(file));
  if (tokens.length === 0) throw new CliError(EXIT.usage, `--against ${file}: the file contains no signed head`);
  const { key, enterpriseId } = await loadTrustedKey(call, client);
  const opened = await Promise.all(tokens.map((token) => openHead(token, key)));
  const signed = opened.flatMap((head) => (head === null ? [] : [head]));
  const ours = signed.filter((head) => head.enterprise_id === enterpriseId);
  if (ours.length === 0 && signed.length === opened.length) {
    throw new CliError(EXIT.usage, `--against ${file}: its heads belong to another enterprise`);
  }
  const stood = await checkAll(client, ours);
  const heads = stood.map((head, index) => ({ ...head, taken_at: ours[index]?.taken_at ?? '' }));
  const unsigned = opened.length - signed.length;
  const bad = heads.filter(({ standing }) => !isGoodStanding(standing));
  const isOk = bad.length === 0 && unsigned === 0;
  const lines = bad.map(
    ({ writer, sequence, standing, taken_at: at }) =>
      `broken\t${standing}: event ${sequence} of ${writer} was the end of its chain at ${at}\n`,
  );
  if (unsigned > 0) lines.push(`broken\t${unsigned} heads in ${file} are not signed by this control plane\n`);
  if (isOk) lines.push(`ok: the log contains all ${heads.length} heads of ${file}\n`);
  return { value: { ok: isOk, file, heads, unsigned }, text: lines.join('') };
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw unreadableFile(`--against ${file}`, error, EXIT.usage);
  }
}

const COMPACT_JWS = /\beyJ[\w-]+\.[\w-]+\.[\w-]+/g;

function findSignedHeads(text: string): readonly string[] {
  return [...new Set(text.match(COMPACT_JWS) ?? [])].filter((token) => typOf(token) === AUDIT_HEAD_TYP);
}

function typOf(token: string): string | undefined {
  try {
    return decodeProtectedHeader(token).typ;
  } catch {
    return undefined;
  }
}

async function openHead(token: string, key: CryptoKey): Promise<ExportedHead | null> {
  try {
    const { payload } = await compactVerify(token, key, { algorithms: ['EdDSA', 'Ed25519'] });
    const head = exportedHead.safeParse(JSON.parse(new TextDecoder().decode(payload)));
    return head.success ? head.data : null;
  } catch {
    return null;
  }
}

interface Trusted {
  readonly key: CryptoKey;
  readonly enterpriseId: string;
}

async function loadTrustedKey(call: Call, client: HttpClient): Promise<Trusted> {
  const me = await client.call('GET', '/v1/audit-events/heads', auditHeadsReply, { timeoutMs: CALL_MS });
  const enterpriseId = me.enterprise_id;
  const pinned = await pinnedKey(call, me.control_plane_id);
  if (pinned !== null) return { key: pinned, enterpriseId };
  call.print.note(
    'this machine has not pinned a key of this control plane: signatures are checked with the key that the control plane returns',
  );
  const key = await publicKey(me.control_plane_key.x);
  if (key === null) throw new CliError(EXIT.failed, 'the control plane returned an invalid key');
  return { key, enterpriseId };
}

async function checkAll(client: HttpClient, heads: readonly ExportedHead[]): Promise<readonly StoodHead[]> {
  const stood: StoodHead[] = [];
  for (let start = 0; start < heads.length; start += MAX_CHECKED_HEADS) {
    const part = heads
      .slice(start, start + MAX_CHECKED_HEADS)
      .map(({ writer, sequence, hash }): AuditHead => ({ writer, sequence, hash }));
    const body = { heads: part };
    const reply = await client.call('POST', '/v1/audit-events/heads/check', auditHeadsChecked, {
      body,
      timeoutMs: CALL_MS,
    });
    stood.push(...reply.heads);
  }
  return stood;
}

interface AcceptOptions {
  readonly yes?: boolean;
}
type Mismatch = NonNullable<SidecarHealth['audit_log']>['mismatches'][number];

/** Asks about each chain that was rolled back; only what was shown is accepted. */
async function acceptMismatches(call: Call<AcceptOptions>): Promise<number> {
  const { context, options, print } = call;
  const client = sidecarClient(context, options);
  const health = await fetchSidecarHealth(call);
  const mismatches = health.audit_log?.mismatches ?? [];
  if (mismatches.length === 0) {
    print.line({ accepted: [] }, "this machine's sidecar has not seen the audit log roll back");
    return EXIT.ok;
  }
  const accepted: Mismatch[] = [];
  for (const mismatch of mismatches) {
    const { writer, remembered } = mismatch;
    print.warn(mismatchText(mismatch));
    if (options.yes !== true && !(await askYes(context, 'Was this rollback intended?'))) continue;
    const body = { writer, sequence: remembered.sequence, hash: remembered.hash };
    await client.callEmpty('POST', '/v1/audit-log/accept', { body });
    accepted.push(mismatch);
  }
  print.line({ accepted }, `accepted ${accepted.length} of ${mismatches.length}; this is recorded in the audit log`);
  return accepted.length === mismatches.length ? EXIT.ok : EXIT.failed;
}

function mismatchText({ writer, remembered, found, noticed_at: at }: Mismatch): string {
  const now = found === null ? 'the chain was missing' : `the chain ended at event ${found.sequence} (${found.hash})`;
  return `${writer}: event ${remembered.sequence} (${remembered.hash}) had been acknowledged, but at ${at} ${now}`;
}
