import type { DependencyKind, DependencyRecord, DependencyState } from '../../shared/wire/status/dependencies.ts';
import type { AuditSinkRecord } from '../../shared/wire/audit_sinks.ts';
import { counted } from '../../shared/model/sentence.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';
import type { ProgramContext } from './program_context.ts';
import { type Caller, mayActAs } from '../kernel/caller.ts';
import { MAIL } from '../kernel/mail.ts';
import { readAll } from '../kernel/read_all.ts';
import { replicaLag } from '../kernel/replica_reads.ts';
import type { SeenOutcome } from '../kernel/seen_outcomes.ts';
import { nowText } from '../kernel/service_context.ts';
import { SYNC } from '../marketplace/mirror_sync.ts';
import { listMethods } from '../sign_in/methods.ts';
import { findEnterpriseOidc } from '../store/enterprise_settings.ts';
import { countPushServices } from '../store/people/push_subscriptions.ts';
import { findMirror } from '../store/registry_mirrors.ts';
import { countSeenSidecars } from '../store/sidecars.ts';
import { describeSinks } from '../services/sinks/sinks.ts';
import { listSourcePage } from '../services/sources/secret_sources.ts';

/**
 * What the control plane depends on, as far as it concerns the caller's enterprise, and how its last use went. Only the databases are
 * asked: nothing else is called. Refuses with `admin_required`.
 */
export async function describeDependencies(
  context: ProgramContext,
  caller: Caller,
): Promise<Result<DependencyRecord[], ApiError>> {
  if (!mayActAs(caller, 'admin')) return err(adminsOnly());
  const sinks = await describeSinks(context, caller);
  if (!sinks.ok) return sinks;
  const parts = [
    await describeDatabases(context, caller),
    describeMail(context),
    await describeSignIn(context, caller),
    await describeRegistry(context),
    sinks.value.items.map((sink) => describeSink(sink)),
    await describeSources(context, caller),
    await describePush(context, caller),
    await describeSidecars(context, caller),
  ];
  return ok(parts.flat());
}

type Told = Partial<Pick<DependencyRecord, 'since' | 'worked_at' | 'problem' | 'fix'>>;

function toRecord(kind: DependencyKind, name: string, state: DependencyState, told: Told = {}): DependencyRecord {
  return { kind, name, state, since: null, worked_at: null, problem: null, fix: null, ...told };
}

/** As this program has seen it. */
function ofOutcome(kind: DependencyKind, name: string, seen: SeenOutcome | null, fix: string): DependencyRecord {
  if (seen === null) return toRecord(kind, name, 'unused');
  const worked = toTime(seen.workedAtMs);
  if (seen.problem === null) return toRecord(kind, name, 'works', { worked_at: worked });
  const told = { since: toTime(seen.failingSinceMs), worked_at: worked, problem: seen.problem, fix };
  return toRecord(kind, name, 'failing', told);
}

/** Of all enterprises: when it worked last is not told, because that may be what another one did. */
function ofShared(kind: DependencyKind, name: string, seen: SeenOutcome | null, fix: string): DependencyRecord {
  return { ...ofOutcome(kind, name, seen, fix), worked_at: null };
}

function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

async function describeDatabases(context: ProgramContext, { enterpriseId }: Caller): Promise<DependencyRecord[]> {
  const lag = await replicaLag(context, enterpriseId);
  // Who is told this was found in it.
  const primary = toRecord('database', 'primary', 'works', { worked_at: nowText(context) });
  if (lag === 'none') return [primary];
  return [primary, describeReplica(context, lag)];
}

function describeReplica(context: ProgramContext, lag: number | null): DependencyRecord {
  if (lag === 0) return toRecord('replica', 'replica', 'works', { worked_at: nowText(context) });
  const isSilent = lag === null;
  return toRecord('replica', 'replica', isSilent ? 'failing' : 'behind', {
    problem: isSilent ? 'it does not answer in time' : `it lacks ${counted(lag, 'event')} of the audit log`,
    fix: 'Lists are read from the primary meanwhile. If it stays so, look at the log of the replica.',
  });
}

function describeMail({ mail, local, signIn }: ProgramContext): DependencyRecord[] {
  if (local !== null) return [];
  const fix = 'Compare SVC_MAIL_URL and SVC_MAIL_TOKEN with the settings of the mail service.';
  if (mail !== null) return [ofShared('mail', 'mail service', signIn.outcomes.of(MAIL), fix)];
  return [
    toRecord('mail', 'mail service', 'unused', { fix: 'Set SVC_MAIL_URL to invite and to tell people by mail.' }),
  ];
}

/** The ways to sign in that the installation offers, and the enterprise's own. */
async function describeSignIn(context: ProgramContext, { enterpriseId }: Caller): Promise<DependencyRecord[]> {
  if (context.local !== null) return [];
  const { outcomes } = context.signIn;
  const offered = listMethods(context).providers.map(({ name, title }) =>
    ofShared('sign_in', title, outcomes.of(name), 'Look whether the control plane’s machine reaches the provider.'),
  );
  const own = await findEnterpriseOidc(context.database, enterpriseId);
  if (own === null) return offered;
  const fix = 'Open the issuer’s /.well-known/openid-configuration, and compare the issuer on the page Enterprise.';
  return [...offered, ofOutcome('sign_in', own.issuer, outcomes.of(enterpriseId), fix)];
}

/** After this time a copy is called old. It is synced while people look at the marketplace. */
const OLD_COPY_MS = 24 * 3600_000;

async function describeRegistry({ database, registry, clock }: ProgramContext): Promise<DependencyRecord> {
  const name = new URL(registry.url).host;
  const syncedAt = (await findMirror(database, registry.url))?.syncedAt ?? null;
  const fix =
    'The marketplace shows the copy meanwhile. Look whether the control plane’s machine reaches the registry.';
  const seen = ofOutcome('registry', name, registry.outcomes.of(SYNC), fix);
  if (seen.state === 'failing') return { ...seen, worked_at: syncedAt };
  if (syncedAt === null) return toRecord('registry', name, 'unused');
  const isOld = clock.now() - Date.parse(syncedAt) > OLD_COPY_MS;
  const told = { problem: 'its copy is more than a day old', fix: 'Open the marketplace: it is synced then.' };
  return toRecord('registry', name, isOld ? 'behind' : 'works', { worked_at: syncedAt, ...(isOld && told) });
}

function describeSink(sink: AuditSinkRecord): DependencyRecord {
  const { id, name, failures, failing_since: failingSince, delivered_at: worked, problem, disabled_at: stopped } = sink;
  if (stopped !== null) {
    const fix = `Mend the receiver, then run: svc audit sink enable ${id}`;
    return toRecord('sink', name, 'stopped', { since: stopped, worked_at: worked, problem, fix });
  }
  if (failures > 0) {
    const fix = 'Events wait and are sent again. Look at the receiver.';
    return toRecord('sink', name, 'failing', { since: failingSince, worked_at: worked, problem, fix });
  }
  return toRecord('sink', name, worked === null ? 'unused' : 'works', { worked_at: worked });
}

/** Those that failed last, each by itself, and the others together. Colleagues' own are not shown. */
async function describeSources(context: ProgramContext, caller: Caller): Promise<DependencyRecord[]> {
  const { items } = await readAll((query) => listSourcePage(context, caller, query));
  const failing = items.flatMap(({ owner, path, failure, last_minted_at: worked }) => {
    if (failure === null) return [];
    const fix = `Try it: svc secret source test ${path}${owner === 'enterprise' ? ' --owner enterprise' : ''}`;
    const told = { since: failure.at, worked_at: worked, problem: failure.message, fix };
    return [toRecord('source', path, 'failing', told)];
  });
  const used = items.filter(({ failure, last_minted_at: worked }) => failure === null && worked !== null);
  const times = used.flatMap(({ last_minted_at: worked }) => worked ?? []).toSorted();
  const rest = items.length - failing.length;
  if (rest === 0) return failing;
  const name = `${counted(rest, 'source')} without a failure`;
  const state = used.length === 0 ? 'unused' : 'works';
  return [...failing, toRecord('source', name, state, { worked_at: times.at(-1) ?? null })];
}

async function describePush({ database }: ProgramContext, { enterpriseId }: Caller): Promise<DependencyRecord[]> {
  const services = await countPushServices(database, enterpriseId);
  return services.map(({ host, browsers, failing, problem }) => {
    if (failing === 0) return toRecord('push', host, 'works');
    const told = `${failing} of ${browsers} browsers were not reached: ${problem ?? 'no reason is known'}`;
    const fix = 'They are tried again. Mail tells of approvals too.';
    return toRecord('push', host, 'failing', { problem: told, fix });
  });
}

/** Sidecars ask for the policy all the time, and that they did is noted once a minute. */
const CONNECTED_MS = 3 * 60_000;

async function describeSidecars(context: ProgramContext, { enterpriseId }: Caller): Promise<DependencyRecord> {
  const since = new Date(context.clock.now() - CONNECTED_MS).toISOString();
  const when = { now: nowText(context), since };
  const { enrolled, seen, lastSeenAt } = await countSeenSidecars(context.database, enterpriseId, when);
  const name = `${seen} of ${enrolled} sidecars connected`;
  if (seen > 0) return toRecord('sidecars', name, 'works', { worked_at: lastSeenAt });
  const fix = 'Run svc status on a machine whose sidecar should be connected.';
  return toRecord('sidecars', name, 'unused', { worked_at: lastSeenAt, ...(enrolled > 0 && { fix }) });
}

function adminsOnly(): ApiError {
  return apiError('admin_required', 'the state of dependencies needs the role admin or owner: ask an admin');
}
