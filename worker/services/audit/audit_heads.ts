import type { StatedChain } from '../../../shared/audit/chain_walk.ts';
import { CHAIN_START } from '../../../shared/audit/hash_chain.ts';
import { ok, err, type Result } from '../../../shared/model/result.ts';
import {
  AUDIT_HEAD_TYP,
  AUDIT_HEADS_TYP,
  AUDIT_STATEMENT_TYP,
  type AuditHead,
  type AuditHeadsChecked,
  type AuditHeadsPayload,
  type AuditHeadsReply,
  type AuditStatement,
  type AuditStatementReply,
  type ExportedHead,
  type HeadStanding,
  isGoodStanding,
  MAX_KNOWN_HEADS,
  readKnownHeads,
  type StoodHead,
} from '../../../shared/wire/audit_heads.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { type AuditHeadRow, findHead, listChain, listHeads } from '../../store/audit/audit_events.ts';
import { readBeginning } from './audit_beginning.ts';
import type { Caller } from '../../kernel/caller.ts';
import { nowText, type ServiceContext } from '../../kernel/service_context.ts';
import type { SidecarCaller } from '../sidecars/sidecar_calls.ts';

/** Compares heads of one enterprise's chains that somebody outside of the database remembers with the log. */
export async function checkHeads(
  context: ServiceContext,
  { enterpriseId }: Pick<Caller, 'enterpriseId'>,
  heads: readonly AuditHead[],
): Promise<AuditHeadsChecked> {
  const stood: StoodHead[] = [];
  for (const head of heads) {
    stood.push({ ...head, standing: await compareHead(context, enterpriseId, head) });
  }
  return { ok: stood.every(({ standing }) => isGoodStanding(standing)), heads: stood };
}

async function compareHead(
  context: ServiceContext,
  enterpriseId: string,
  { writer, sequence, hash }: AuditHead,
): Promise<HeadStanding> {
  const head = await findHead(context.database, writer);
  if (head === null || head.enterpriseId !== enterpriseId) return 'missing';
  if (head.sequence < sequence) return 'behind';
  if (sequence === 0) return hash === CHAIN_START ? 'kept' : 'differs';
  const [event] = await listChain(context.database, writer, { after: sequence - 1, limit: 1 });
  if (event?.sequence === sequence) return event.hash === hash ? 'kept' : 'differs';
  const begun = await readBeginning(context, writer);
  if (!begun.ok || begun.value.start.sequence < sequence) return 'differs';
  const isLast = begun.value.start.sequence === sequence;
  return !isLast || begun.value.start.hash === hash ? 'pruned' : 'differs';
}

/**
 * Tells a sidecar the heads of the chains that it witnesses, and the state of the heads it remembers. Refuses with
 * `invalid_query`.
 */
export async function tellHeads(
  context: ServiceContext,
  caller: SidecarCaller,
  known: string,
): Promise<Result<string, ApiError>> {
  const remembered = readKnownHeads(known);
  if (remembered === null) {
    return err(
      apiError('invalid_query', `known must be a list of at most ${MAX_KNOWN_HEADS} heads: WRITER.SEQUENCE.HASH,...`),
    );
  }
  const { heads: stood } = await checkHeads(context, caller, remembered);
  const ends = await Promise.all(
    [caller.sidecarId, caller.enterpriseId].map((writer) => findHead(context.database, writer)),
  );
  const payload: AuditHeadsPayload = {
    sidecar_id: caller.sidecarId,
    nonce: caller.nonce,
    heads: ends.flatMap((head) => (head === null ? [] : [headOf(head)])),
    known: stood,
  };
  return ok(await context.controlPlane.sign(AUDIT_HEADS_TYP, payload));
}

function headOf({ writer, sequence, hash }: AuditHeadRow): AuditHead {
  return { writer, sequence, hash };
}

/**
 * The heads of all chains of the caller's enterprise, each signed. A copy kept elsewhere later shows what was removed.
 */
export async function exportHeads(
  context: ServiceContext,
  { enterpriseId }: Pick<Caller, 'enterpriseId'>,
): Promise<AuditHeadsReply> {
  const { id, publicKey } = context.controlPlane;
  const takenAt = nowText(context);
  const heads = await listHeads(context.database, enterpriseId);
  return {
    control_plane_id: id,
    control_plane_key: publicKey,
    enterprise_id: enterpriseId,
    taken_at: takenAt,
    heads: await Promise.all(heads.map((head) => signHead(context, head, takenAt))),
  };
}

/** The chains of an enterprise, and the reply that signs them. */
interface StatedLog {
  readonly statement: AuditStatementReply;
  readonly chains: readonly StatedChain[];
}

/** A signed statement of every chain of the caller's enterprise: what an exported log is compared with. Refuses with `conflict`. */
export async function stateChains(
  context: ServiceContext,
  { enterpriseId }: Pick<Caller, 'enterpriseId'>,
): Promise<Result<StatedLog, ApiError>> {
  const { id, publicKey } = context.controlPlane;
  const takenAt = nowText(context);
  const chains: StatedChain[] = [];
  for (const head of await listHeads(context.database, enterpriseId)) {
    const begun = await readBeginning(context, head.writer);
    if (!begun.ok) {
      const message = `the beginning of the chain of ${head.writer} is not sealed: look at it with svc audit verify`;
      return err(apiError('conflict', message));
    }
    // Pruning may have passed this head since it was read.
    const { start: beginning } = begun.value;
    chains.push(
      beginning.sequence > head.sequence
        ? { ...beginning, writer: head.writer, beginning }
        : { ...headOf(head), beginning },
    );
  }
  const statement: AuditStatement = { control_plane_id: id, enterprise_id: enterpriseId, taken_at: takenAt, chains };
  const signed = await context.controlPlane.sign(AUDIT_STATEMENT_TYP, statement);
  return ok({ statement: { control_plane_key: publicKey, signed }, chains });
}

/** A head, signed by the control plane with the time when it was the end of its chain. */
async function signHead(
  context: ServiceContext,
  row: AuditHeadRow,
  takenAt: string,
): Promise<AuditHeadsReply['heads'][number]> {
  const head = headOf(row);
  const payload: ExportedHead = {
    ...head,
    control_plane_id: context.controlPlane.id,
    enterprise_id: row.enterpriseId,
    taken_at: takenAt,
  };
  return { ...head, signed: await context.controlPlane.sign(AUDIT_HEAD_TYP, payload) };
}
