import { randomBytes } from 'node:crypto';
import type { ApprovalPayload, ApprovalRequest, ApprovalState } from '../../shared/wire/approvals.ts';
import { newId } from '../../shared/wire/ids.ts';

interface Approval {
  readonly id: string;
  readonly asked: ApprovalRequest;
  state: ApprovalState;
  /** The request that used up the decision. */
  usedBy: string | null;
}

type Answer = Pick<ApprovalPayload, 'request_id' | 'approval_id' | 'state' | 'expires_at'>;

/** The approvals of a fake control plane: a decision covers one identical request, the first that fetches it. */
export class FakeApprovals {
  readonly all: Approval[] = [];
  readonly #waiting = new Set<() => void>();

  decide(id: string, state: ApprovalState): void {
    const approval = this.all.find((each) => each.id === id);
    if (approval === undefined) throw new Error(`no approval ${id}`);
    approval.state = state;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** The decision for a request, or a pending approval. */
  ask(asked: ApprovalRequest): Answer {
    const same = this.all.filter(({ asked: other }) => other.fingerprint === asked.fingerprint);
    const mine = same.find(({ usedBy }) => usedBy === asked.request_id);
    const found = mine ?? same.find(({ state, usedBy }) => usedBy === null && state !== 'expired');
    return this.#answer(found ?? this.#pending(asked), asked.request_id);
  }

  async wait(id: string, requestId: string, waitSeconds: number): Promise<Answer | null> {
    const approval = this.all.find((each) => each.id === id);
    if (approval === undefined) return null;
    if (approval.state === 'pending' && waitSeconds > 0) {
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
      });
    }
    return this.#answer(approval, requestId);
  }

  #pending(asked: ApprovalRequest): Approval {
    const approval: Approval = { id: newId('apr', randomBytes(16)), asked, state: 'pending', usedBy: null };
    this.all.push(approval);
    return approval;
  }

  #answer(approval: Approval, requestId: string): Answer {
    if (approval.state === 'approved') approval.usedBy ??= requestId;
    const isOthers = approval.usedBy !== null && approval.usedBy !== requestId;
    const state = isOthers ? 'used' : approval.state;
    return { request_id: requestId, approval_id: approval.id, state, expires_at: new Date().toISOString() };
  }
}
