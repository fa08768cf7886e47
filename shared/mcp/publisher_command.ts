/** An argument as the publisher wrote it, without a secret's value. */
interface PublishedArgument {
  readonly type: 'named' | 'positional';
  readonly name: string;
  readonly value: string | null;
  readonly value_hint: string | null;
  readonly default: string | null;
  readonly repeated: boolean;
}

/** A package as the registry describes it. */
interface PublishedPackage {
  readonly identifier: string;
  readonly runtime_hint: string | null;
  readonly runtime_arguments: readonly PublishedArgument[];
  readonly package_arguments: readonly PublishedArgument[];
}

/**
 * The words with which a publisher would start a package, with `{name}` for values; null if only the name is known. For
 * display only: what an install starts is derived, and may be another command.
 */
export function publisherCommand(item: PublishedPackage): readonly string[] | null {
  const { identifier, runtime_hint: hint, runtime_arguments: before, package_arguments: after } = item;
  const program = hint === null || hint === '' ? [] : [hint];
  if (program.length + before.length + after.length === 0) return null;
  return [...program, ...before.flatMap(wordsOf), identifier, ...after.flatMap(wordsOf)];
}

function wordsOf(argument: PublishedArgument): readonly string[] {
  const { type, name, repeated } = argument;
  const more = repeated ? ['...'] : [];
  if (type === 'positional') return [valueOf(argument) ?? '{value}', ...more];
  const value = valueOf(argument);
  return [name, ...(value === null ? [] : [value]), ...more];
}

/** A named argument without a value is a switch. */
function valueOf({ value, value_hint: hint, default: otherwise }: PublishedArgument): string | null {
  const known = [value, otherwise].find((text) => text !== null && text !== '');
  if (known !== undefined) return known;
  return hint === null || hint === '' ? null : `{${hint}}`;
}
