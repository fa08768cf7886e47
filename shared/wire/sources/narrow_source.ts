import { err, ok, type Result } from '../../model/result.ts';
import type { Narrowing } from './narrowing.ts';
import {
  type AnySourceKind,
  SOURCE_RULES,
  SOURCE_TABLE,
  secretSource,
  type SourceOf,
  type SecretSource,
} from './source_table.ts';

/**
 * The source with less: every field of the narrowing is in the source, or in what the source leaves to the provider and the
 * provider itself bounds. Refuses what would be more, or what nobody can tell to be less. The message never has a secret.
 */
export function narrowSource<K extends AnySourceKind>(
  source: SourceOf<K>,
  wanted: Narrowing,
): Result<SecretSource, string> {
  const { kind } = source;
  if (SOURCE_TABLE[kind].runs === 'machine')
    return err('a program of this machine gives the value: it cannot be narrowed');
  const { narrowedBy } = SOURCE_RULES[kind];
  const known = Object.keys(narrowedBy);
  if (known.length === 0) return err(`a secret of the kind ${kind} is one value, which cannot be narrowed`);
  const given = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
  const foreign = Object.keys(given).find((name) => !known.includes(name));
  if (foreign !== undefined) {
    return err(`${foreign}: a secret of the kind ${kind} is narrowed by ${known.join(' and ')}`);
  }
  for (const [name, whyMore] of Object.entries(narrowedBy)) {
    const problem = Object.hasOwn(given, name) ? whyMore(source, wanted) : null;
    if (problem !== null) return err(`${name}: ${problem}`);
  }
  const narrowed = secretSource.safeParse({ ...source, ...given });
  if (narrowed.success) return ok(narrowed.data);
  const issue = narrowed.error.issues[0];
  return err(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is not valid'}`);
}
