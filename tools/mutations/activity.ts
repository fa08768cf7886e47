import type { Mutation } from '../mutation.ts';

const MINUTES = 'shared/report/request_minutes.ts';
const OF_MINUTES = 'shared/report/request_minutes.test.ts';

/** Checks of the counts that the overview shows (decision 0144). */
export const ACTIVITY_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Console: activity',
    holds: 'a sidecar cannot add to minutes that are over or to come',
    file: MINUTES,
    text: '    if (!(minute >= now - KEPT_MINUTES && minute <= now + MOST_AHEAD_MINUTES)) continue;\n',
    replacement: '',
    tests: [OF_MINUTES],
  },
  {
    row: 'Console: activity',
    holds: 'a sum that a sidecar states cannot overflow the count of a minute',
    file: MINUTES,
    text: 'Math.min(stated, MOST_REQUESTS)',
    replacement: 'stated',
    tests: [OF_MINUTES],
  },
  {
    row: 'Console: activity',
    holds: 'the activity of an enterprise is shown to its members alone',
    file: 'worker/store/audit/request_minutes.ts',
    text: '.where(and(eq(requestMinutes.enterpriseId, enterpriseId), gte(minute, sinceMinute)));',
    replacement: '.where(gte(minute, sinceMinute));',
    tests: ['worker/services/audit/activity.test.ts'],
  },
];
