import type { z } from 'zod';
import { collectNameText, stepIdText } from './plan_fields.ts';

type Context = z.core.$RefinementCtx;

/** Two steps with one id would share scopes, outputs and rows of the audit log. Steps with an invalid form have their own issues. */
export function checkStepIds(steps: unknown, context: Context): void {
  if (!Array.isArray(steps)) return;
  const ids = steps.map((step: unknown) => idOf(step));
  for (const [index, id] of ids.entries()) {
    const first = ids.indexOf(id);
    if (id === null || first === index) continue;
    report(context, [index, 'id'], `is "${id}", which step ${first + 1} already has: give each step its own id`);
  }
}

function idOf(step: unknown): string | null {
  const id: unknown = typeof step === 'object' && step !== null && 'id' in step ? step.id : null;
  return typeof id === 'string' && stepIdText.safeParse(id).success ? id : null;
}

/** A duplicate host, in any spelling, is a mistake in a list that must be reviewed closely. */
export function checkHosts(hosts: readonly string[], context: Context): void {
  for (const [index, host] of hosts.entries()) {
    if (hosts.indexOf(host) === index) continue;
    report(context, [index], `is ${host}, which is already in the list: remove one`);
  }
}

interface Collect {
  readonly path: string;
  readonly as?: string | undefined;
}

/** Each output has a unique name, and its default name must be a valid file name. */
export function checkCollects(collects: readonly Collect[], context: Context): void {
  const seen = new Map<string, number>();
  for (const [index, { path, as }] of collects.entries()) {
    const name = as ?? path.slice(path.lastIndexOf('/') + 1);
    if (as === undefined && !collectNameText.safeParse(name).success) {
      report(
        context,
        [index, 'as'],
        'is missing: the last part of the path is not a plain file name, so write one here',
      );
    }
    const first = seen.get(name);
    if (first === undefined) seen.set(name, index);
    else
      report(
        context,
        [index],
        `would overwrite output ${first + 1}, which is kept as "${name}" too: write another "as"`,
      );
  }
}

interface Mount {
  readonly source: string;
  readonly target: string;
  readonly access: string;
}

/** All steps share one container, so all their mounts exist together: two at one place, or one inside another, conflict. */
export function checkMounts(steps: readonly { readonly mounts: readonly Mount[] }[], context: Context): void {
  const seen: Mount[] = [];
  for (const [step, { mounts }] of steps.entries()) {
    for (const [index, mount] of mounts.entries()) {
      const problem =
        findReservedProblem(mount) ?? seen.map((other) => findClash(other, mount)).find((text) => text !== null);
      if (problem !== undefined && problem !== null) report(context, [step, 'mounts', index, 'target'], problem);
      seen.push(mount);
    }
  }
}

/** The location of the CA, the sentinel and the helpers: a mount there could replace them. */
const RESERVED_TARGETS = [
  '/etc',
  '/run',
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib64',
  '/proc',
  '/sys',
  '/dev',
  '/boot',
  '/var/run',
];

function findReservedProblem({ target }: Mount): string | null {
  const over = RESERVED_TARGETS.find(
    (folder) => target === folder || target.startsWith(`${folder}/`) || folder.startsWith(`${target}/`),
  );
  return over === undefined
    ? null
    : `covers or lies in ${over}, which belongs to the image: mount below /home/agent, /srv or /mnt`;
}

function findClash(one: Mount, other: Mount): string | null {
  if (one.target === other.target) {
    if (one.source === other.source && one.access === other.access) return null;
    return `is where another source is mounted, and all steps share one container: choose another target`;
  }
  const [outer, inner] = one.target.length < other.target.length ? [one, other] : [other, one];
  if (!inner.target.startsWith(`${outer.target}/`)) return null;
  return `is inside another mount's target (${outer.target} and ${inner.target}): choose one beside it`;
}

function report(context: Context, path: (string | number)[], message: string): void {
  context.addIssue({ code: 'custom', path, message });
}
