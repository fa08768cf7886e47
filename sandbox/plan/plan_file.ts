import { isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml';
import type { z } from 'zod';
import type { Plan } from '../../shared/model/plan.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { planInput, toPlan } from '../../shared/wire/plan/plan.ts';

/** A plan file is written by hand, so a larger file is not a plan. */
export const MAX_PLAN_FILE_BYTES = 1024 * 1024;

/** A problem in the file; `line` counts from 1 and is null for the file as a whole. */
interface PlanProblem {
  readonly line: number | null;
  /** Such as `steps[1].trust.hosts[0]`; '' for the file as a whole. */
  readonly field: string;
  readonly message: string;
}

/** Parses `plan.yaml`. Returns all problems, each with its line. */
export function parsePlan(text: string): Result<Plan, readonly PlanProblem[]> {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, merge: false, prettyErrors: false });
  const broken = document.errors.map((error) => ({
    line: lines.linePos(error.pos[0]).line,
    field: '',
    message: `is not valid YAML here: ${(error.message.split('\n')[0] ?? '').trim()}`,
  }));
  if (broken.length > 0) return err(broken);
  if (document.contents === null) return err([problemOfFile('is empty: `svc plan init` writes one to begin with')]);
  const value = plainValue(document);
  if (!value.ok) return err([problemOfFile(value.error)]);
  const parsed = planInput.safeParse(value.value);
  if (parsed.success) return ok(toPlan(parsed.data));
  const problems = parsed.error.issues.flatMap((issue) => problemsOf(issue, document, lines));
  return err(problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0)));
}

/** `plan.yaml:4: steps[0].command is ...`, for people and for editors that jump to a line. */
export function planProblemText(file: string, problem: PlanProblem): string {
  const at = problem.line === null ? file : `${file}:${problem.line}`;
  return `${at}: ${problem.field === '' ? 'the file' : problem.field} ${problem.message}`;
}

/** The parser refuses aliases that expand too far; no plan needs one. */
function plainValue(document: Document): Result<unknown, string> {
  try {
    return ok(document.toJS({ maxAliasCount: 10 }));
  } catch {
    return err('has aliases that cannot be followed: write the values out');
  }
}

function problemsOf(issue: z.core.$ZodIssue, document: Document, lines: LineCounter): readonly PlanProblem[] {
  const field = placeText(issue.path);
  if (issue.code !== 'unrecognized_keys')
    return [{ line: lineOf(document, issue.path, lines), field, message: issue.message }];
  const [first] = issue.keys;
  const line = lineOf(document, [...issue.path, ...(first === undefined ? [] : [first])], lines);
  return [{ line, field, message: `has the ${issue.message}` }];
}

/** The line of the node at a path, or of its nearest existing parent. */
function lineOf(document: Document, path: readonly PropertyKey[], lines: LineCounter): number | null {
  let node: unknown = document.contents;
  let offset = startOf(node);
  for (const key of path) {
    const next = childOf(node, key);
    if (next === null) break;
    offset = next.offset ?? offset;
    node = next.node;
  }
  return offset === null ? null : lines.linePos(offset).line;
}

/** The line of a map's value is the line of its key. */
function childOf(node: unknown, key: PropertyKey): { readonly node: unknown; readonly offset: number | null } | null {
  if (isSeq(node)) {
    const item: unknown = typeof key === 'number' ? node.items[key] : undefined;
    return item === undefined ? null : { node: item, offset: startOf(item) };
  }
  if (!isMap(node)) return null;
  const pair: unknown = node.items.find((item) => isScalar(item.key) && item.key.value === key);
  return isPair(pair) ? { node: pair.value, offset: startOf(pair.key) } : null;
}

function startOf(node: unknown): number | null {
  const range = isNode(node) ? node.range : null;
  return range?.[0] ?? null;
}

/** `steps[1].trust.hosts[0]`. */
export function placeText(path: readonly PropertyKey[]): string {
  return path
    .map((key, at) => (typeof key === 'number' ? `[${key}]` : `${at === 0 ? '' : '.'}${String(key)}`))
    .join('');
}

function problemOfFile(message: string): PlanProblem {
  return { line: null, field: '', message };
}
