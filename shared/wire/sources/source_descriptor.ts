import { z } from 'zod';
import type { FieldProblem } from '../../model/problem.ts';
import type { Narrowing } from './narrowing.ts';

/** A field of a source: what it may be, and how people are asked for it. */
export interface SourceField<S extends z.ZodType = z.ZodType> {
  readonly schema: S;
  readonly label: string;
  readonly hint?: string;
  readonly placeholder?: string;
  /** Rarely changed: it is shown on demand, unless it is needed. */
  readonly isRare?: true;
  /** It has several lines. */
  readonly isLong?: true;
}

export type SourceFields = Readonly<Record<string, SourceField>>;

type Shape<K extends string, F extends SourceFields> = { kind: z.ZodLiteral<K> } & {
  -readonly [N in keyof F]: F[N]['schema'];
};
type Schema<K extends string, F extends SourceFields> = z.ZodObject<Shape<K, F>, z.core.$strict>;

/** Why a value would be more than the source allows, without the name of the field; null if it is less. */
type NarrowingRule<S> = (source: S, wanted: Narrowing) => string | null;

/** What every program knows about the sources of one kind. How one mints is in the control plane (`worker/services/sources/kinds/`). */
interface About<K extends string, F extends SourceFields, R extends 'control_plane' | 'machine'> {
  readonly title: string;
  readonly lead: string;
  /** Where it is asked for a value: by the control plane, or by a program on the machine of a developer. */
  readonly runs: R;
  /** A key set is a secret access key of AWS with its access key id and session token: one value, so that nobody combines two mints. */
  readonly value: 'token' | 'key_set' | 'kept_value';
  /** The longest life that is asked for or believed, unless the source has `duration_seconds`; null: the provider alone decides. */
  readonly lifeSeconds: number | null;
  /** Whether its provider ends a value that nobody is to use any more. */
  readonly revokes: 'always' | 'by revocation_url' | 'never';
  /** What the key of a source may be; none: it has no key. */
  readonly keys: readonly string[];
  readonly keyHint: string;
  /** In the order in which people are shown them. */
  readonly fields: F;
  /** Which of the keys a source has. Absent: the first. */
  readonly keyOf?: (source: z.output<Schema<K, F>>) => string;
  /** What fields contradict each other. */
  readonly checks?: readonly ((source: z.output<Schema<K, F>>) => FieldProblem | null)[];
  /** The fields of which a session may have less; see {@link Narrowing}. */
  readonly narrowedBy: { readonly [N in keyof Narrowing]?: NarrowingRule<z.output<Schema<K, F>>> };
}

/** How programs ask a kind about one of its sources. */
export interface SourceRules<S> {
  readonly keys: readonly string[];
  readonly keyOf?: (source: S) => string;
  readonly narrowedBy: { readonly [N in keyof Narrowing]?: NarrowingRule<S> };
}

/** Of a value whose provider states no end. */
export const UNTOLD_SECONDS = 300;

/** What a kind is about that reads a value where it is kept, rather than have one minted. */
export const KEPT = {
  runs: 'control_plane',
  value: 'kept_value',
  lifeSeconds: UNTOLD_SECONDS,
  revokes: 'never',
  narrowedBy: {},
} as const;

/** A kind of source, with the schema of what a source of it is made of, apart from its key. None of that is secret. */
export function sourceKind<const K extends string, const F extends SourceFields, R extends 'control_plane' | 'machine'>(
  kind: K,
  about: About<K, F, R>,
): About<K, F, R> & { readonly schema: Schema<K, F> } {
  const schema = z.strictObject(shapeOf(kind, about.fields)).superRefine((source, context) => {
    for (const check of about.checks ?? []) {
      const problem = check(source);
      if (problem !== null) context.addIssue({ code: 'custom', path: [problem.field], message: problem.message });
    }
  });
  return { ...about, schema };
}

function shapeOf<K extends string, F extends SourceFields>(kind: K, fields: F): Shape<K, F>;
function shapeOf(kind: string, fields: SourceFields): z.ZodRawShape {
  const schemas = Object.entries(fields).map(([name, { schema }]): [string, z.ZodType] => [name, schema]);
  return { kind: z.literal(kind), ...Object.fromEntries(schemas) };
}
