import { exportedLog } from '../../../shared/audit/exported_log.ts';
import { ok, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { MAX_PAGE } from '../../../shared/wire/primitives.ts';
import { isStillIn } from '../../store/sign_ins.ts';
import { listChain } from '../../store/audit/audit_events.ts';
import type { Caller } from '../../kernel/caller.ts';
import { nowSeconds, type ServiceContext } from '../../kernel/service_context.ts';
import { sha256Hex } from '../../kernel/sha256.ts';
import { stateChains } from './audit_heads.ts';
import { toStoredEvent } from './audit_log.ts';
import { streamTexts } from './stream_texts.ts';

/**
 * The whole log of the caller's enterprise as the file that `svc audit export` writes (decision 0094). It fails midway if the
 * log does not match its statement, if the caller is suspended or
 * signed out, or if the control plane stops. Refuses with `conflict`,
 * `too_many_open_calls`.
 */
export async function exportProof(
  context: ServiceContext,
  caller: Caller,
): Promise<Result<ReadableStream<Uint8Array>, ApiError>> {
  const stated = await stateChains(context, caller);
  if (!stated.ok) return stated;
  const leave = context.openCalls.enter('audit export', caller.userId);
  if (!leave.ok) return leave;
  const read = async (writer: string, page: { readonly after: number; readonly limit: number }) => {
    if (context.stopping.aborted) throw new Error('the export ended early: the control plane stops');
    if (!(await isStillIn(context.database, caller, nowSeconds(context)))) {
      throw new Error('the export ended early: its reader is suspended, has left or is signed out');
    }
    return (await listChain(context.database, writer, page)).map((row) => toStoredEvent(row));
  };
  return ok(streamTexts(textsOf(exportedLog(stated.value, { read, eventsPerRead: MAX_PAGE, sha256Hex })), leave.value));
}

async function* textsOf(parts: ReturnType<typeof exportedLog>): AsyncGenerator<string, void> {
  for await (const part of parts) {
    if (!part.ok) {
      const { writer, sequence, reason } = part.error;
      throw new Error(`the export ended early: ${reason} at event ${sequence} of ${writer}`);
    }
    yield part.value.text;
  }
}
