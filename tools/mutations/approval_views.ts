import type { Mutation } from '../mutation.ts';

const VIEWS = 'worker/services/approvals/approval_views.ts';
const CONTENT = 'sidecar/exchange/held_content.ts';
const OF_VIEWS: Mutation['tests'] = ['worker/approval_views.test.ts'];
const OF_CONTENT: Mutation['tests'] = ['sidecar/exchange/held_content.test.ts'];

/** What is shown of a request that waits, and to whom. */
export const VIEW_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Requests shown for an approval',
    holds: 'a page reads only what was sealed for its own user',
    file: VIEWS,
    text: ' && row.userId === caller.userId',
    replacement: '',
    tests: OF_VIEWS,
  },
  {
    row: 'Requests shown for an approval',
    holds: 'only the sidecar that holds a request shows it',
    file: VIEWS,
    text: ' || row.sidecarId !== sidecarId',
    replacement: '',
    tests: OF_VIEWS,
  },
  {
    row: 'Requests shown for an approval',
    holds: 'only a request whose agent waits is shown',
    file: VIEWS,
    text: 'if (!isHeld(context, row)) return err(notHeld());',
    replacement: '',
    tests: OF_VIEWS,
  },
  {
    row: 'Requests shown for an approval',
    holds: 'a request is shown to a limited number of pages',
    file: VIEWS,
    text: '>= MOST_VIEWS',
    replacement: '> 99',
    tests: OF_VIEWS,
  },
  {
    row: 'Requests shown for an approval',
    holds: 'nothing of a request is kept once it is decided',
    file: 'worker/services/approvals/approvals.ts',
    text: '      ...deleteViews(context.database, [row.id]),\n',
    replacement: '',
    tests: OF_VIEWS,
  },
  {
    row: 'Requests shown for an approval',
    holds: 'a view ends after two minutes',
    file: VIEWS,
    text: 'return timeAfterSeconds(context, -VIEW_SECONDS);',
    replacement: 'return timeAfterSeconds(context, -86_400);',
    tests: OF_VIEWS,
  },
  {
    row: 'Requests shown for an approval',
    holds: 'the shown body has no credential',
    file: CONTENT,
    text: 'scrubText(latin1Text(bytes), scrub)',
    replacement: 'latin1Text(bytes)',
    tests: OF_CONTENT,
  },
  {
    row: 'Requests shown for an approval',
    holds: 'the shown line has no credential',
    file: CONTENT,
    text: 'toShownLine(scrubText(text, scrub), MOST_LINE_CHARACTERS)',
    replacement: 'toShownLine(text, MOST_LINE_CHARACTERS)',
    tests: OF_CONTENT,
  },
  {
    row: 'Requests shown for an approval',
    holds: 'a credential across the end of what is shown is masked',
    file: CONTENT,
    text: 'MOST_SHOWN_BYTES + 16 * 1024',
    replacement: 'MOST_SHOWN_BYTES',
    tests: OF_CONTENT,
  },
  {
    row: 'Requests shown for an approval',
    holds: 'hidden characters of the body are written out',
    file: CONTENT,
    text: "return showHidden(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(masked, { stream: isCut }));",
    replacement: "return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(masked, { stream: isCut });",
    tests: OF_CONTENT,
  },
  {
    row: 'Requests shown for an approval',
    holds: 'a request that cannot be masked is not shown',
    file: 'sidecar/control/approvals.ts',
    text: '    if (content === null) return;\n',
    replacement: '    if (content === null) Object.assign(call, {});\n',
    tests: ['sidecar/control/approvals.test.ts'],
  },
  {
    row: 'Requests shown for an approval',
    holds: 'a button decides nothing before its card could be seen at its place',
    file: 'worker/islands/decide.js',
    text: 'return performance.now() - sinceMs >= STEADY_MS;',
    replacement: 'return true;',
    tests: ['e2e/console/moment_of_approval.test.ts'],
  },
];
