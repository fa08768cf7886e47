import type { AuditBeginningRow } from '../store/audit_beginnings.ts';
import type { AuditHeadRow } from '../store/audit_events.ts';
import { sha256Base64Url } from './encoding.ts';
import type { Vault } from './vault.ts';

/** What every seal of this form begins with. Those before it did not cover the enterprise, and are of no use any more. */
const FORM = 'v2.';

/**
 * The seal of a chain that was continued behind a head that did not verify. No head has it as its own, so the chain goes on
 * failing: a new seal would hide what was done to it.
 */
export const BROKEN_SEAL = `${FORM}broken`;

/** Who writes for an enterprise: how many chains were begun, and a hash over all of their names in that order. */
export interface WriterSet {
  readonly writers: number;
  readonly writersHash: string;
}

export const NO_WRITERS: WriterSet = { writers: 0, writersHash: '' };

/** The set with one more writer. */
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
 * What the seal of a head is over: whose chain it is, where it ends and, on the control plane's own, who else writes for the
 * enterprise. Without the master key nobody can cut events off the end, give a chain to another enterprise or take a whole
 * chain away, and make it look right.
 */
function headText({ enterpriseId, writer, sequence, hash, writers, writersHash }: SealedHead): string {
  return JSON.stringify(['svc audit head 2', enterpriseId, writer, sequence, hash, writers, writersHash]);
}

/** What the seal of a beginning is over: without the master key nobody can cut events off a chain's beginning. */
function beginningText({ enterpriseId, writer, sequence, hash }: SealedBeginning): string {
  return JSON.stringify(['svc audit beginning 2', enterpriseId, writer, sequence, hash]);
}

export async function sealHead(vault: Vault, head: SealedHead): Promise<string> {
  return FORM + (await vault.mac(headText(head)));
}

export async function sealBeginning(vault: Vault, beginning: SealedBeginning): Promise<string> {
  return FORM + (await vault.mac(beginningText(beginning)));
}

/** Whether the head of a chain is what this control plane sealed, by either key while the master key is changed. */
export function isSealedHead(vault: Vault, head: AuditHeadRow): Promise<boolean> {
  return isSeal(vault, headText(head), head.seal);
}

/** The same of a beginning. */
export function isSealedBeginning(vault: Vault, beginning: AuditBeginningRow): Promise<boolean> {
  return isSeal(vault, beginningText(beginning), beginning.seal);
}

async function isSeal(vault: Vault, text: string, seal: string): Promise<boolean> {
  const macs = await vault.macs(text);
  return macs.some((mac) => seal === FORM + mac);
}

/** The seals that versions before this one made. They are looked at once, when a database is taken over. */
export const FORMER_SEALS = {
  async isHead(vault: Vault, { writer, sequence, hash, seal }: AuditHeadRow): Promise<boolean> {
    return (await vault.macs(JSON.stringify(['svc audit head', writer, sequence, hash]))).includes(seal);
  },
  async isBeginning(vault: Vault, { writer, sequence, hash, seal }: AuditBeginningRow): Promise<boolean> {
    return (await vault.macs(JSON.stringify(['svc audit beginning', writer, sequence, hash]))).includes(seal);
  },
  /** Whether a text has the form of this version's seals, right or wrong. */
  isOver: (seal: string): boolean => seal.startsWith(FORM),
} as const;
