import {
  Kind,
  Lexer,
  parse,
  Source,
  TokenKind,
  type DefinitionNode,
  type DocumentNode,
  type FragmentDefinitionNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql/language';
import type { GraphqlType } from '../model/connector.ts';
import { err, ok, type Result } from '../model/result.ts';

/** The top-level selection of a GraphQL document, in any spelling. */
export interface GraphqlDocument {
  readonly type: GraphqlType;
  /** How often each field is selected, by its schema name and not its alias. Empty if there is none or only `__typename`. */
  readonly fields: ReadonlyMap<string, number>;
}

/** Parsing is linear in the document, and recurses once per level; these bounds limit both. */
const MOST_CHARACTERS = 256 * 1024;
const MOST_TOKENS = 10_000;
const MOST_LEVELS = 200;
/** The longest line with the type and all fields: a person who approves it sees each field. */
const MOST_DESCRIBED_CHARACTERS = 300;

/** Servers differ in whether such a character is text, ends a line (and so a comment), or ends the document. */
const AMBIGUOUS_CHARACTER = /(?![\t\n\r])[\p{Cc}\u2028\u2029]|\r(?!\n)/u;
const OPENING: ReadonlySet<string> = new Set([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const CLOSING: ReadonlySet<string> = new Set([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

/**
 * Reads a GraphQL document. Every operation in it counts, whichever `operationName` selects, and so does every field that a
 * fragment, `@include` or `@skip` may add: a server runs a part of what is returned here and never anything else. The error
 * is a predicate for the subject "the document".
 */
export function readGraphqlDocument(text: string, operationName: string | null): Result<GraphqlDocument, string> {
  if (text.length > MOST_CHARACTERS) return err('is too long: send long texts as variables');
  if (AMBIGUOUS_CHARACTER.test(text)) {
    return err('contains a control character or a bare carriage return: send such text as a variable');
  }
  const parsed = parseDocument(text);
  if (!parsed.ok) return parsed;
  const { operations, fragments, rest } = partsOf(parsed.value);
  if (rest.length > 0) return err('defines types: only operations and fragments are run');
  if (hasTwice(fragments.map(({ name }) => name.value))) return err('has two fragments of one name');
  const fault = operationFault(operations, operationName);
  if (fault !== null) return err(fault);
  const [first, ...others] = operations;
  if (first === undefined) return err('has no operation');
  if (others.some(({ operation }) => operation !== first.operation)) {
    return err('has operations of more than one type: send only the one that is to run');
  }
  const fields = topLevelFields(operations, fragments);
  if (!fields.ok) return fields;
  const document = { type: first.operation, fields: fields.value };
  if (describeDocument(document).length <= MOST_DESCRIBED_CHARACTERS) return ok(document);
  return err('selects too many different fields at its top level: send fewer of them at a time');
}

/** The type and the fields in one line: `mutation mergePullRequest, addComment (2 times)`. */
export function describeDocument({ type, fields }: GraphqlDocument): string {
  const names = Array.from(fields, ([name, times]) => (times === 1 ? name : `${name} (${times} times)`));
  return `${type} ${names.length === 0 ? '__typename' : names.join(', ')}`;
}

function parseDocument(text: string): Result<DocumentNode, string> {
  try {
    const source = new Source(text);
    const excess = excessOf(new Lexer(source));
    return excess === null ? ok(parse(source, { noLocation: true })) : err(excess);
  } catch {
    return err('is not a GraphQL document');
  }
}

/** Throws on an invalid token. */
function excessOf(lexer: Lexer): string | null {
  let levels = 0;
  for (let tokens = 0; ; tokens += 1) {
    const { kind } = lexer.advance();
    if (kind === TokenKind.EOF) return null;
    if (tokens >= MOST_TOKENS) return `has more than ${MOST_TOKENS} tokens`;
    if (OPENING.has(kind)) levels += 1;
    else if (CLOSING.has(kind)) levels -= 1;
    if (levels > MOST_LEVELS) return `is nested more than ${MOST_LEVELS} levels deep`;
  }
}

interface DocumentParts {
  readonly operations: readonly OperationDefinitionNode[];
  readonly fragments: readonly FragmentDefinitionNode[];
  readonly rest: readonly DefinitionNode[];
}

function partsOf({ definitions }: DocumentNode): DocumentParts {
  const operations = definitions.filter((each) => each.kind === Kind.OPERATION_DEFINITION);
  const fragments = definitions.filter((each) => each.kind === Kind.FRAGMENT_DEFINITION);
  const rest = definitions.filter(
    ({ kind }) => kind !== Kind.OPERATION_DEFINITION && kind !== Kind.FRAGMENT_DEFINITION,
  );
  return { operations, fragments, rest };
}

/** Why it is unclear which operation runs. */
function operationFault(operations: readonly OperationDefinitionNode[], operationName: string | null): string | null {
  const names = operations.map(({ name }) => name?.value ?? null);
  if (hasTwice(names)) return 'has two operations of one name, or without one';
  if (names.length > 1 && names.includes(null)) return 'has an operation without a name beside others';
  if (operationName === null)
    return names.length > 1 ? 'has several operations, and no operationName selects one' : null;
  return names.includes(operationName) ? null : 'has no operation with the operationName that was sent';
}

/** A fragment is expanded once, also if it refers to itself. That is enough, and the work stays linear. */
function topLevelFields(
  operations: readonly OperationDefinitionNode[],
  fragments: readonly FragmentDefinitionNode[],
): Result<ReadonlyMap<string, number>, string> {
  const byName = new Map(fragments.map((fragment) => [fragment.name.value, fragment.selectionSet] as const));
  const seen = new Set<string>();
  const fields = new Map<string, number>();
  const waiting: SelectionSetNode[] = operations.map(({ selectionSet }) => selectionSet);
  for (let set = waiting.pop(); set !== undefined; set = waiting.pop()) {
    for (const selection of set.selections) {
      if (selection.kind === Kind.INLINE_FRAGMENT) waiting.push(selection.selectionSet);
      else if (selection.kind === Kind.FIELD) count(fields, selection.name.value);
      else if (!seen.has(selection.name.value)) {
        const fragment = byName.get(selection.name.value);
        if (fragment === undefined) return err('uses a fragment that it does not define');
        seen.add(selection.name.value);
        waiting.push(fragment);
      }
    }
  }
  return ok(fields);
}

function count(fields: Map<string, number>, name: string): void {
  if (name !== '__typename') fields.set(name, (fields.get(name) ?? 0) + 1);
}

function hasTwice(names: readonly (string | null)[]): boolean {
  return new Set(names).size < names.length;
}
