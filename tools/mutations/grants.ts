import type { Mutation } from '../mutation.ts';

const STORE = 'worker/store/approval_grants.ts';
const GRANTS = 'worker/services/approvals/grants.ts';
const APPROVALS = 'worker/services/approvals/approvals.ts';
const TESTS: Mutation['tests'] = ['worker/approval_grants.test.ts'];

/** What a grant of further requests covers, and until when. */
export const GRANT_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Grants of approvals',
    holds: 'a grant covers requests of its own session',
    file: STORE,
    text: 'sql`${approvalGrants.sessionId} IS ${sessionId}`,\n',
    replacement: '',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a grant covers requests of its own sidecar',
    file: STORE,
    text: 'sql`${approvalGrants.sidecarId} IS ${sidecarId}`,\n',
    replacement: '',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a grant covers one operation',
    file: STORE,
    text: 'eq(approvalGrants.action, action),\n',
    replacement: '',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a grant covers one path',
    file: STORE,
    text: 'eq(approvalGrants.covers, covers),\n',
    replacement: '',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'another version of the connector ends its grants',
    file: STORE,
    text: 'eq(approvalGrants.subjectVersion, subjectVersion),\n',
    replacement: '',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a revoked grant lets nothing through',
    file: STORE,
    text: 'isNull(approvalGrants.revokedAt),\n',
    replacement: '',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a grant ends after its time',
    file: STORE,
    text: 'gt(approvalGrants.endsAt, now),\n',
    replacement: '',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a grant lets its number of requests through',
    file: STORE,
    text: 'or(isNull(approvalGrants.times), lt(approvalGrants.used, approvalGrants.times)),\n',
    replacement: '',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a revocation ends the approval that its grant was given with',
    file: STORE,
    text: ".set({ state: 'expired' })",
    replacement: '.set({})',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'only the person whose agent asks gives a grant',
    file: GRANTS,
    text: 'if (row.userId !== caller.userId) {',
    replacement: "if (row.userId === '') {",
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a grant is bounded by a session or a sidecar',
    file: GRANTS,
    text: 'const isBound = row.sessionId !== null || row.sidecarId !== null;',
    replacement: 'const isBound = row.id !== null;',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a request waits only with one of its own session',
    file: APPROVALS,
    text: '(row.sessionId === sessionId && row.sidecarId === sidecarId)',
    replacement: 'true',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a request that waits passes by a grant at its own sidecar only',
    file: APPROVALS,
    text: ' && row.sidecarId === sidecarId && nowText',
    replacement: ' && nowText',
    tests: TESTS,
  },
  {
    row: 'Grants of approvals',
    holds: 'a denial of an identical request comes before a grant',
    file: APPROVALS,
    text: 'if (isDecided) return',
    replacement: "if (isDecided && covering.state !== 'denied') return",
    tests: TESTS,
  },
];
