import {
  type Alias,
  CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml';
import type { FieldProblem } from '../../../shared/model/problem.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { showHidden } from '../../../shared/model/shown_text.ts';
import { parseUniqueJson } from '../../../shared/connect/unique_json.ts';
import { connectorSpec, type ConnectorSpecRecord } from '../../../shared/wire/connectors/connector_spec.ts';
import { fieldProblems } from '../../../shared/wire/errors.ts';

/** A problem of a spec's text, with the line where it is, from 1; null if the text does not say. */
export interface SpecProblem extends FieldProblem {
  readonly line: number | null;
}

type Read<T> = Result<T, readonly SpecProblem[]>;

/** The YAML parser needs time and stack for each token and level. A spec with 200 operations has about 40,000 tokens. */
const MOST_TOKENS = 40_000;
const MOST_LEVELS = 64;
/** Of all aliases together, counted by what they stand for. */
const MOST_ALIASED = 100;

/** A connector spec as JSON or YAML. A text that begins with a brace is JSON. Both have the same problems, with their lines. */
export function readSpecText(text: string): Read<ConnectorSpecRecord> {
  const isJson = text.trimStart().startsWith('{');
  const value = isJson ? readJson(text) : readYaml(text);
  if (!value.ok) return value;
  const parsed = connectorSpec.safeParse(value.value);
  if (parsed.success) return ok(parsed.data);
  const lineOf = findLines(text);
  return err(fieldProblems(parsed.error).map((problem) => ({ ...problem, line: lineOf(problem.field) })));
}

function readJson(text: string): Read<unknown> {
  const parsed = parseUniqueJson(text);
  if (parsed.ok) return parsed;
  try {
    JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? showHidden(error.message) : 'it cannot be read';
    const [, line] = /\(line (\d+) column \d+\)/.exec(why) ?? [];
    return err([problemAt(line === undefined ? null : Number(line), `is not JSON: ${why}`)]);
  }
  return err([problemAt(null, parsed.error)]);
}

function readYaml(text: string): Read<unknown> {
  const fault = shapeFault(text);
  if (fault !== null) return err([fault]);
  const lines = new LineCounter();
  const document = parseYaml(text, lines);
  const wrong = [...document.errors, ...document.warnings];
  if (wrong.length > 0) {
    const shown = wrong.slice(0, 20).map(({ message, pos: [at] }) => {
      return problemAt(lines.linePos(at).line, `is not YAML: ${showHidden(message.split('\n')[0] ?? '')}`);
    });
    return err(shown);
  }
  // Under YAML 1.1, "no" and 010 are other values than the ones that a person reads on the page.
  if (document.directives?.yaml.version !== '1.2') {
    return err([problemAt(null, 'is not YAML 1.2: remove its line "%YAML", or write %YAML 1.2')]);
  }
  const twin = findTwinKey(document.contents);
  if (twin !== null) return err([problemAt(lines.linePos(twin).line, 'has a key twice in one mapping')]);
  const unknown = findUnknownAlias(document.contents);
  if (unknown !== null) {
    const shown = showHidden(`*${unknown.source}`);
    const message = `is not YAML: ${shown} is an alias of nothing; a text that begins with * has to be in quotes`;
    return err([problemAt(lines.linePos(unknown.range?.[0] ?? 0).line, message)]);
  }
  try {
    return ok(document.toJS({ maxAliasCount: MOST_ALIASED }));
  } catch {
    return err([problemAt(null, `has aliases that stand for more than ${MOST_ALIASED} others: write them out`)]);
  }
}

/** Keys are compared here, because the parser compares each with all others. */
function parseYaml(text: string, lineCounter: LineCounter) {
  return parseDocument(text, { uniqueKeys: false, prettyErrors: false, lineCounter });
}

function problemAt(line: number | null, message: string): SpecProblem {
  return { field: '', message, line };
}

/**
 * What makes a text too large or too deep to be parsed: the parser is recursive, and a deep text would end the program. The lexer is
 * not, and tells quoted brackets from others.
 */
function shapeFault(text: string): SpecProblem | null {
  let tokens = 0;
  let line = 1;
  let brackets = 0;
  let marks = 0;
  let isStart = true;
  for (const token of new Lexer().lex(text)) {
    tokens += 1;
    if (tokens > MOST_TOKENS) return problemAt(line, `is too large: as YAML it may have ${MOST_TOKENS} tokens`);
    const type = CST.tokenType(token);
    if (type === 'flow-seq-start' || type === 'flow-map-start') brackets += 1;
    if (type === 'flow-seq-end' || type === 'flow-map-end') brackets -= 1;
    if (brackets < 0) return problemAt(line, 'is not YAML: a bracket is closed that was not opened');
    if (brackets === 0 && type !== null && LEVEL_MARKS.has(type)) marks += 1;
    const isIndentation = isStart && type === 'space';
    if (brackets > MOST_LEVELS || marks > MOST_LEVELS || (isIndentation && token.length > 2 * MOST_LEVELS)) {
      return problemAt(line, `is nested more than ${MOST_LEVELS} levels deep`);
    }
    isStart = type === 'newline';
    if (isStart) marks = 0;
    line += countLines(token);
  }
  return null;
}

/** Each may begin a level on the line that it is on. */
const LEVEL_MARKS: ReadonlySet<string> = new Set(['seq-item-ind', 'explicit-key-ind', 'map-value-ind']);

function countLines(token: string): number {
  let lines = 0;
  for (let at = token.indexOf('\n'); at !== -1; at = token.indexOf('\n', at + 1)) lines += 1;
  return lines;
}

/** Where a mapping has a key again; null if none has. A key that is no scalar, or an alias, is none of a spec. */
function findTwinKey(contents: Node | null): number | null {
  let found: number | null = null;
  visit(contents, {
    Map(_, map) {
      const keys = new Set<string>();
      for (const { key } of map.items) {
        const node = isScalar(key) || isAlias(key) ? key : null;
        const name = isScalar(key) ? String(key.value) : null;
        if (name === null || keys.has(name)) {
          found = node?.range?.[0] ?? map.range?.[0] ?? 0;
          return visit.BREAK;
        }
        keys.add(name);
      }
      return undefined;
    },
  });
  return found;
}

/** An alias of what has no anchor before it, such as a host that begins with a star. */
function findUnknownAlias(contents: Node | null): Alias | null {
  const anchors = new Set<string>();
  let found: Alias | null = null;
  visit(contents, {
    Value(_, { anchor }) {
      if (anchor !== undefined) anchors.add(anchor);
    },
    Alias(_, alias) {
      if (anchors.has(alias.source)) return undefined;
      found = alias;
      return visit.BREAK;
    },
  });
  return found;
}

/** Finds the line of a field's path, or of the part of it that is there. */
function findLines(text: string): (field: string) => number | null {
  if (shapeFault(text) !== null) return () => null;
  const lines = new LineCounter();
  const { contents } = parseYaml(text, lines);
  return (field) => {
    let at: unknown = contents;
    let place = contents?.range?.[0] ?? null;
    for (const name of field === '' ? [] : field.split('.')) {
      const next = memberOf(at, name);
      if (next === null) break;
      ({ node: at, place } = next);
    }
    return place === null ? null : lines.linePos(place).line;
  };
}

function memberOf(at: unknown, name: string): { readonly node: Node | null; readonly place: number | null } | null {
  if (isSeq<Node>(at)) {
    const item = at.items[Number(name)];
    return item === undefined ? null : { node: item, place: item.range?.[0] ?? null };
  }
  if (!isMap<Node, Node | null>(at)) return null;
  const pair = at.items.find(({ key }) => isScalar(key) && String(key.value) === name);
  return pair === undefined ? null : { node: pair.value, place: pair.key.range?.[0] ?? null };
}
