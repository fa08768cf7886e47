import { fixedText, type InstallationPlan, type NotInstallable } from './install/plan.ts';
import { planInstallation } from './installation.ts';
import type { RegistryEntry } from './registry_entry.ts';
import type { EntryRiskCode } from '../model/mcp_server.ts';
import type { Result } from '../model/result.ts';

/** One thing to know of a server before it is installed, in a few words. */
export interface EntryRisk {
  readonly code: EntryRiskCode;
  readonly text: string;
}

const WEEK_MS = 7 * 24 * 3600_000;

/**
 * The line of risk of an entry, for the way in which an install would use it by default: where its code runs, how many
 * secrets it gets, whether its image can change, and whether it is new. `plan` is that way if the caller has it already.
 */
export function entryRisks(
  entry: RegistryEntry,
  nowMs: number,
  plan: Result<InstallationPlan, NotInstallable> = planInstallation(entry),
): readonly EntryRisk[] {
  const risks = plan.ok ? planRisks(plan.value) : [notInstallable(plan.error)];
  return [
    ...risks,
    ...(entry.status === 'deprecated' ? [{ code: 'deprecated', text: 'deprecated' } as const] : []),
    ...(isNew(entry, nowMs) ? [{ code: 'new', text: 'new this week' } as const] : []),
  ];
}

function notInstallable({ reason }: NotInstallable): EntryRisk {
  const text = reason === 'unpinned_version' ? 'cannot be installed: no exact version' : 'cannot be installed';
  return { code: 'not_installable', text };
}

function planRisks(plan: InstallationPlan): readonly EntryRisk[] {
  const secrets = plan.inputs.filter(({ secret }) => secret);
  const required = secrets.filter((input) => input.required).length;
  const risks = [
    place(plan),
    count('secrets', required, ''),
    count('optional_secrets', secrets.length - required, 'optional '),
  ];
  // A tag can be moved to another image. Packages of the other registries cannot be replaced.
  const isUnpinned = plan.ecosystem === 'oci' && plan.warnings.some(({ code }) => code === 'no_integrity');
  if (isUnpinned) risks.push({ code: 'unpinned_image', text: 'unpinned image' });
  return risks.filter((risk) => risk !== null);
}

function place({ mode, ecosystem, url }: InstallationPlan): EntryRisk {
  if (mode === 'remote') {
    const host = fixedText(url?.authority ?? null);
    return { code: 'remote', text: host === null ? 'calls an address that you enter' : `calls ${host}` };
  }
  return ecosystem === 'oci'
    ? { code: 'runs_container', text: 'runs a container' }
    : { code: 'runs_code', text: 'runs code as you' };
}

function count(code: EntryRisk['code'], times: number, kind: string): EntryRisk | null {
  return times === 0 ? null : { code, text: `${times} ${kind}${times === 1 ? 'secret' : 'secrets'}` };
}

/** Whether this version was published in the last seven days. */
function isNew({ publishedAt }: RegistryEntry, nowMs: number): boolean {
  const ageMs = nowMs - Date.parse(publishedAt ?? '');
  return ageMs >= 0 && ageMs < WEEK_MS;
}
