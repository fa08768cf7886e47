import type { Mutation } from '../mutation.ts';

const SINKS = 'worker/services/sinks/sinks.test.ts';

/** Checks of the sinks of audit events. */
export const SINK_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Audit sinks',
    holds: 'a sink is held by one worker at a time',
    file: 'worker/store/audit/audit_sinks.ts',
    text: 'and(isNull(auditSinks.disabledAt), lte(auditSinks.nextTryAt, now), isUnheld)',
    replacement: '(void isUnheld, and(isNull(auditSinks.disabledAt), lte(auditSinks.nextTryAt, now)))',
    tests: [SINKS],
  },
  {
    row: 'Audit sinks',
    holds: 'a worker that no longer holds a sink changes nothing of it',
    file: 'worker/store/audit/audit_sinks.ts',
    text: `...guard(sql\`EXISTS (SELECT 1 FROM audit_sinks WHERE id = \${id} AND holder = \${holder})\`),`,
    replacement: `...guard(sql\`\${holder} = \${holder}\`),`,
    tests: [SINKS],
  },
  {
    row: 'Audit sinks',
    holds: 'a batch that is sent again has the same events',
    file: 'worker/services/sinks/sink_delivery.ts',
    text: 'limit: row.batch ?? limits.eventsPerBatch',
    replacement: 'limit: limits.eventsPerBatch',
    tests: [SINKS],
  },
  {
    row: 'Audit sinks',
    holds: 'only admins see the sinks of an enterprise',
    file: 'worker/services/sinks/sinks.ts',
    text: `  if (!mayActAs(caller, 'admin')) return err(adminsOnly());\n  const rows`,
    replacement: '  const rows',
    tests: [SINKS],
  },
  {
    row: 'Audit sinks',
    holds: 'a sink of another enterprise does not exist',
    file: 'worker/services/sinks/sinks.ts',
    text: 'if (row === null || row.enterpriseId !== caller.enterpriseId) return',
    replacement: 'if (row === null) return',
    tests: ['worker/foreign_tenant.test.ts'],
  },
  {
    row: 'Audit sinks',
    holds: 'the URL of a sink is checked before it is stored',
    file: 'worker/services/sinks/sinks.ts',
    text: 'const target = targetProblem(new URL(url), local !== null);',
    replacement: `const target = new URL(url).hash === '#' ? targetProblem(new URL(url), local !== null) : null;`,
    tests: [SINKS],
  },
  {
    row: 'Audit sinks',
    holds: 'no reply names the URL of a sink',
    file: 'worker/services/sinks/sinks.ts',
    text: 'host: new URL(input.url).hostname,',
    replacement: 'host: input.url,',
    tests: [SINKS],
  },
  {
    row: 'Audit sinks',
    holds: 'what a sink sends to is sealed',
    file: 'worker/services/sinks/sinks.ts',
    text: 'sealed: await sealTarget(context.vault, { enterpriseId, id }, target),',
    replacement: 'sealed: JSON.stringify(target),',
    tests: [SINKS],
  },
  {
    row: 'Audit sinks',
    holds: 'a sink has no header that belongs to the call',
    file: 'shared/wire/audit_sinks.ts',
    text: '!FRAMING.has(name)',
    replacement: `name !== ''`,
    tests: [SINKS],
  },
  {
    row: 'Audit sinks',
    holds: 'names in a message to a chat are escaped',
    file: 'worker/services/sinks/slack_sink.ts',
    text: 'return escapeText(`${name} ${action}`);',
    replacement: 'return `${name} ${action}`;',
    tests: [SINKS],
  },
];
