import type { AuditBeginningRow } from '../store/audit/audit_beginnings.ts';
import type { AuditHeadRow } from '../store/audit/audit_events.ts';
import { sha256Base64Url } from './encoding.ts';
import type { Vault } from './vault.ts';

/** The prefix of every seal of this version. Earlier seals did not cover the enterprise and are no longer valid. */
const FORM = 'v2.';

/**
 * The seal of a chain that was continued after a head that did not verify. It is never valid, so the chain keeps
 * failing verification: a new seal would hide the manipulation.
 */
export const BROKEN_SEAL = `${FORM}broken`;

/** The writers of an enterprise: how many chains were begun, and a hash over all their names in order. */
export interface WriterSet {
  readonly writers: number;
  readonly writersHash: string;
}

export const NO_WRITERS: WriterSet = { writers: 0, writersHash: '' };

/** Adds a writer to the set. */
export async function withWriter(set: WriterSet, writer: string): Promise<WriterSet> {
  const writers = set.writers + 1;
  return {
    writers,
    writersHash: await sha256Base64Url(JSON.stringify(['svc audit writer', set.writersHash, writers, writer])),
  };
}

type SealedHead = Omit<AuditHeadRow, 'seal'>;
type SealedBeginning = Omit<AuditBeginningRow, 'seal'>;

/**
 * The text that a head's seal covers: whose chain it is, where it ends and, on the control plane's own chain, the set
 * of writers. Without the master key nobody can cut events off the end, move a chain to another enterprise or remove a
 * whole chain unnoticed.
 */
function headText({ enterpriseId, writer, sequence, hash, writers, writersHash }: SealedHead): string {
  return JSON.stringify(['svc audit head 2', enterpriseId, writer, sequence, hash, writers, writersHash]);
}

/**
 * The text that a beginning's seal covers. Without the master key nobody can cut events off a chain's beginning
 * unnoticed.
 */
function formatBeginning({ enterpriseId, writer, sequence, hash }: SealedBeginning): string {
  return JSON.stringify(['svc audit beginning 2', enterpriseId, writer, sequence, hash]);
}

export async function sealHead(vault: Vault, head: SealedHead): Promise<string> {
  return FORM + (await vault.mac(headText(head)));
}

export async function sealBeginning(vault: Vault, beginning: SealedBeginning): Promise<string> {
  return FORM + (await vault.mac(formatBeginning(beginning)));
}

/** Whether this control plane sealed the head, with either key while the master key is being changed. */
export function isSealedHead(vault: Vault, head: AuditHeadRow): Promise<boolean> {
  return isSeal(vault, headText(head), head.seal);
}

/** The same for a beginning. */
export function isSealedBeginning(vault: Vault, beginning: AuditBeginningRow): Promise<boolean> {
  return isSeal(vault, formatBeginning(beginning), beginning.seal);
}

async function isSeal(vault: Vault, text: string, seal: string): Promise<boolean> {
  const macs = await vault.macs(text);
  return macs.some((mac) => seal === FORM + mac);
}

/** The seals of earlier versions. They are read once, when a database is taken over. */
export const FORMER_SEALS = {
  async isHead(vault: Vault, { writer, sequence, hash, seal }: AuditHeadRow): Promise<boolean> {
    return (await vault.macs(JSON.stringify(['svc audit head', writer, sequence, hash]))).includes(seal);
  },
  async isBeginning(vault: Vault, { writer, sequence, hash, seal }: AuditBeginningRow): Promise<boolean> {
    return (await vault.macs(JSON.stringify(['svc audit beginning', writer, sequence, hash]))).includes(seal);
  },
  /** Whether a text has the format of this version's seals, valid or not. */
  isOver: (seal: string): boolean => seal.startsWith(FORM),
} as const;
