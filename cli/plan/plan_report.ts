import type { SealedStep } from '../../shared/wire/plan/plan_lock.ts';
import { readAuditEventsPage } from '../../shared/wire/audit_events.ts';
import { listReachedHosts, formatReachedHosts, type ReachedHost } from '../../sandbox/plan/reached_hosts.ts';
import { OUTCOME_WORDS, type PlanEnd, type PlanRun } from '../../sandbox/plan/run_plan.ts';
import type { StepResult } from '../../sandbox/plan/run_step.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError } from '../exit_codes.ts';
import type { Column } from '../terminal/output.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

interface Row extends StepResult {
  readonly step: SealedStep;
  /** Null if the audit log could not be read. */
  readonly reached: readonly ReachedHost[] | null;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'STEP', cell: ({ id }) => id },
  { title: 'EFFECT', cell: ({ step }) => step.effect ?? '-' },
  { title: 'HOSTS REACHED', cell: ({ reached }) => (reached === null ? '?' : formatReachedHosts(reached)) },
  {
    title: 'RESULT',
    cell: ({ outcome }) => OUTCOME_WORDS[outcome],
    style: ({ outcome }) => (outcome === 'done' ? 'green' : 'red'),
  },
  { title: 'EXIT', cell: ({ exitCode }) => (exitCode === null ? '-' : String(exitCode)) },
  { title: 'TIME', cell: ({ seconds }) => `${seconds.toFixed(1)} s` },
];

/** The report of a finished plan: each step, the hosts that it contacted according to the audit log, and how it ended. */
export async function printPlanEnd(call: Call, run: PlanRun, end: PlanEnd): Promise<void> {
  const reached = await fetchReachedHosts(call, run, end.sessionId);
  const rows = end.results.flatMap((result): Row[] => {
    const step = run.steps.find(({ id }) => id === result.id);
    return step === undefined
      ? []
      : [{ ...result, step, reached: reached === null ? null : (reached.get(step.id) ?? []) }];
  });
  call.print.rows(planRecord(run, end, rows), rows, COLUMNS, 'No steps were run.');
  if (end.results.some(({ collected }) => collected.length > 0)) call.print.note(`outputs: ${end.outputFolder}`);
}

function planRecord(run: PlanRun, end: PlanEnd, rows: readonly Row[]): object {
  return {
    plan: run.lock.name,
    image: run.lock.image,
    lock_sha256: run.lock.lock_sha256,
    session_id: end.sessionId,
    egress: run.session.egress,
    ok: rows.every(({ outcome }) => outcome === 'done'),
    output: end.results.some(({ collected }) => collected.length > 0) ? end.outputFolder : null,
    steps: rows.map(({ id, step, reached, outcome, exitCode, seconds, problem, collected }) => ({
      id,
      effect: step.effect ?? null,
      hosts: step.hosts,
      reached,
      outcome,
      exit_code: exitCode,
      seconds,
      problem,
      collected,
    })),
  };
}

/** The session's events, which are complete after an orderly end of the session. Null if they cannot be read. */
export async function fetchReachedHosts(
  call: Call,
  run: Pick<PlanRun, 'steps'>,
  sessionId: string,
): Promise<ReturnType<typeof listReachedHosts> | null> {
  if (run.steps.every(({ effect }) => effect === undefined)) return new Map();
  try {
    const client = controlClient(call.context, call.options);
    const query = { session: sessionId };
    return listReachedHosts(await fetchAllPages(client, '/v1/audit-events', readAuditEventsPage, query));
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    call.print.warn(`the contacted hosts are unknown: ${error.message}`);
    return null;
  }
}
