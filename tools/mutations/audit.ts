import type { Mutation } from '../mutation.ts';

const ROLLBACK = 'worker/services/audit/audit_rollback.test.ts';
const HEADS = 'worker/services/audit/audit_heads.test.ts';
const PROOF = 'worker/services/audit/audit_proof.test.ts';
const ANCHORS = 'worker/services/audit/audit_anchors.test.ts';
const WITNESS = 'sidecar/control/audit_witness.test.ts';
const CONTROL = 'sidecar/control/control.test.ts';
const COMMIT = 'worker/kernel/commit.ts';
const VERIFICATION = 'worker/services/audit/audit_verification.ts';

/** What makes an audit log that goes back show. */
export const AUDIT_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Audit log',
    holds: 'an event after an unsealed head does not give the chain a valid seal',
    file: COMMIT,
    text: 'const isIntact = head.enterpriseId === enterpriseId && (await isSealedHead(context.vault, head));',
    replacement: 'const isIntact = true;',
    tests: [ROLLBACK],
  },
  {
    row: 'Audit log',
    holds: 'a chain whose head is missing does not start again',
    file: COMMIT,
    text: "return { head: none, state: isNew ? 'intact' : 'found_broken' };",
    replacement: "return { head: none, state: 'intact' };",
    tests: [ROLLBACK],
  },
  {
    row: 'Audit log',
    holds: 'a head’s seal covers its enterprise',
    file: 'worker/kernel/audit_seals.ts',
    text: "return JSON.stringify(['svc audit head 2', enterpriseId, writer, sequence, hash, writers, writersHash]);",
    replacement:
      "void enterpriseId; return JSON.stringify(['svc audit head 2', writer, sequence, hash, writers, writersHash]);",
    tests: [ROLLBACK],
  },
  {
    row: 'Audit log',
    holds: 'the seal of the control plane’s own head covers the set of writers',
    file: 'worker/kernel/audit_seals.ts',
    text: "return JSON.stringify(['svc audit head 2', enterpriseId, writer, sequence, hash, writers, writersHash]);",
    replacement:
      "void [writers, writersHash]; return JSON.stringify(['svc audit head 2', enterpriseId, writer, sequence, hash]);",
    tests: [ROLLBACK],
  },
  {
    row: 'Audit log',
    holds: 'a missing chain of the set of writers is detected',
    file: VERIFICATION,
    text: "if (gone !== undefined) return breakOf(gone, 'missing_chain');",
    replacement: 'void gone;',
    tests: [ROLLBACK],
  },
  {
    row: 'Audit log',
    holds: 'the set of writers is what was sealed',
    file: VERIFICATION,
    text: "if (set.writers !== own.writers || set.writersHash !== own.writersHash) return breakOf(enterpriseId, 'wrong_writers');",
    replacement: 'void set;',
    tests: [ROLLBACK],
  },
  {
    row: 'Audit log',
    holds: 'a chain has no events after its head',
    file: VERIFICATION,
    text: "return (await isPassed(context, head)) ? broken(head.sequence, null, 'wrong_head') : { chain, broken: null };",
    replacement: 'void isPassed; return { chain, broken: null };',
    tests: [ROLLBACK],
  },
  {
    row: 'Audit log',
    holds: 'an event’s row is of the enterprise of its chain',
    file: VERIFICATION,
    text: "if (row.enterpriseId !== head.enterpriseId) return 'wrong_enterprise';",
    replacement: '',
    tests: [ROLLBACK],
  },
  {
    row: 'Audit log',
    holds: 'an enterprise is migrated from an earlier version only once',
    file: 'worker/services/audit/audit_takeover.ts',
    text: 'if (seals.some((seal) => FORMER_SEALS.isOver(seal))) return [];',
    replacement: 'void seals;',
    tests: [ROLLBACK],
  },
  {
    row: 'Audit log',
    holds: 'only events of a chain with a valid head are pruned',
    file: 'worker/services/audit/audit_pruning.ts',
    text: 'if (head !== null && !(await isSealedHead(context.vault, head))) {',
    replacement: 'void isSealedHead; if (writer === null && head !== null) {',
    tests: [ROLLBACK],
  },
  {
    row: 'Audit log',
    holds: 'a remembered head is identified by its hash, not by its number',
    file: 'worker/services/audit/audit_heads.ts',
    text: "if (event?.sequence === sequence) return event.hash === hash ? 'kept' : 'differs';",
    replacement: "if (event?.sequence === sequence) return 'kept';",
    tests: [HEADS],
  },
  {
    row: 'Audit log',
    holds: 'a chain that ends before a remembered head is reported as behind',
    file: 'worker/services/audit/audit_heads.ts',
    text: "if (head.sequence < sequence) return 'behind';",
    replacement: "if (head.sequence < sequence) return 'kept';",
    tests: [HEADS],
  },
  {
    row: 'Audit: export with proof',
    holds: 'a download that an event is missing from breaks, so it is not taken for the whole log',
    file: 'worker/services/audit/audit_proof.ts',
    text: 'if (!part.ok) {',
    replacement: 'if (!part.ok) return; if (!part.ok as boolean) {',
    tests: [PROOF],
  },
  {
    row: 'Audit: export with proof',
    holds: 'a reader who is suspended meanwhile gets no more events',
    file: 'worker/services/audit/audit_proof.ts',
    text: 'if (!(await isStillIn(context.database, caller, nowSeconds(context)))) {',
    replacement: 'if (false as boolean) {',
    tests: [PROOF],
  },
  {
    row: 'Audit: retention page',
    holds: 'it counts the events of the own enterprise only',
    file: 'worker/store/audit/audit_beginnings.ts',
    text: `.where(eq(auditHeads.enterpriseId, enterpriseId));
  return rows[0] ??`,
    replacement: `.where(sql\`\${enterpriseId} IS NOT NULL\`);
  return rows[0] ??`,
    tests: ['worker/routes/console/console_retention.test.ts'],
  },
  {
    row: 'Audit log',
    holds: 'a sidecar advances only with an answer that continues the head it remembers',
    file: 'sidecar/control/audit_witness.ts',
    text: 'if (!continues || this.#mismatches.has(writer)) void this.check();',
    replacement: 'if (!continues && this.#mismatches.has(writer)) void this.check();',
    tests: [WITNESS],
  },
  {
    row: 'Audit log',
    holds: 'a mismatch is reported, recorded and stored',
    file: 'sidecar/control/audit_witness.ts',
    text: 'if (!isGoodStanding(standing)) this.#notice(head, standing, end);',
    replacement: 'if (!isGoodStanding(standing)) void this.#notice;',
    tests: [WITNESS, CONTROL],
  },
  {
    row: 'Audit log',
    holds: 'an older statement about the log is ignored',
    file: 'sidecar/control/reply_verifier.ts',
    text: "if (!isMine(identity, payload.value, nonce)) return refuseReply('reply about the audit log');",
    replacement: '',
    tests: [CONTROL],
  },
  {
    row: 'Audit log',
    holds: 'heads are sent once a day, for any number of workers',
    file: 'worker/store/audit/audit_anchors.ts',
    text: 'return [...guard(sql`NOT EXISTS (${taken})`), held];',
    replacement: 'void taken; return [held];',
    tests: [ANCHORS],
  },
  {
    row: 'Audit log',
    holds: 'heads that a receiver did not accept are sent again',
    file: 'worker/services/audit/audit_anchors.ts',
    text: 'if (status >= 200 && status < 300) return ok(undefined);',
    replacement: 'if (status >= 200) return ok(undefined);',
    tests: [ANCHORS],
  },
  {
    row: 'Audit log',
    holds: 'the URL that heads are sent to is never shown, not even in a refusal',
    file: 'worker/services/audit/audit_anchors.ts',
    text: 'return err({ problem: `status_${status}`, message: `the receiver answered with status ${status}` });',
    replacement:
      'return err({ problem: `status_${status} ${url}`, message: `the receiver answered with status ${status}` });',
    tests: [ANCHORS],
  },
  {
    row: 'Audit: export of the page',
    holds: 'no cell of a CSV file is a formula',
    file: 'worker/services/audit/audit_file.ts',
    text: "const safe = /^[=+\\-@\\t\\r\\n]/.test(value) ? `'${value}` : value;",
    replacement: 'const safe = value;',
    tests: ['worker/services/audit/audit_filters.test.ts'],
  },
];
