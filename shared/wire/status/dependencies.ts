import { z } from 'zod';
import { time } from '../primitives.ts';

export const DEPENDENCY_KINDS = [
  'database',
  'replica',
  'mail',
  'sign_in',
  'registry',
  'sink',
  'source',
  'push',
  'sidecars',
] as const;
export type DependencyKind = (typeof DEPENDENCY_KINDS)[number];

/**
 * `behind`: it works, and what it has is old. `stopped`: svc no longer uses it. `unused`: it was not used since the program started, or
 * there is none.
 */
export const DEPENDENCY_STATES = ['works', 'behind', 'failing', 'stopped', 'unused'] as const;
export type DependencyState = (typeof DEPENDENCY_STATES)[number];

/** Something that the control plane depends on. */
export const dependencyRecord = z
  .object({
    kind: z.enum(DEPENDENCY_KINDS),
    name: z.string(),
    state: z.enum(DEPENDENCY_STATES),
    /** Since when it fails or is stopped, if that is known. */
    since: time.nullable(),
    /** When it last worked, if that is known. */
    worked_at: time.nullable(),
    /** What failed last, without secrets. */
    problem: z.string().nullable(),
    /** What to do about it. */
    fix: z.string().nullable(),
  })
  .meta({ id: 'Dependency' });
export type DependencyRecord = z.infer<typeof dependencyRecord>;

/** `GET /v1/dependencies`. */
export const dependenciesReply = z.object({ items: z.array(dependencyRecord) }).meta({ id: 'Dependencies' });
