/** A word, a string, an expression `#"..."`, or a list. */
type Part = { readonly word: string } | { readonly string: string } | { readonly expression: string } | readonly Part[];

/** Decides an operation on a path as `sandbox-exec` would: the last rule that matches. */
export type Decide = (operation: string, path: string) => 'allow' | 'deny';

/** Reads a profile by the rules of its language (Scheme): an independent reading, which throws if something is not closed. */
export function readProfile(text: string): Decide {
  const rules = parse(text).filter((part): part is readonly Part[] => Array.isArray(part));
  return (operation, path) => {
    let decided: 'allow' | 'deny' = 'deny';
    for (const [action, ...rest] of rules) {
      const verb = action !== undefined && 'word' in action ? action.word : '';
      if (verb !== 'allow' && verb !== 'deny') continue;
      const operations = rest.flatMap((part) => ('word' in part ? [part.word] : []));
      const filters = rest.filter((part): part is readonly Part[] => Array.isArray(part));
      const isMeant = operations.some((each) => each === 'default' || covers(each, operation));
      if (isMeant && (filters.length === 0 || filters.some((filter) => matches(filter, path)))) decided = verb;
    }
    return decided;
  };
}

function covers(rule: string, operation: string): boolean {
  return rule === operation || (rule.endsWith('*') && operation.startsWith(rule.slice(0, -1)));
}

function matches([kind, value]: readonly Part[], path: string): boolean {
  if (kind === undefined || !('word' in kind) || value === undefined) return false;
  if (kind.word === 'literal' && 'string' in value) return path === value.string;
  if (kind.word === 'subpath' && 'string' in value) return path === value.string || path.startsWith(`${value.string}/`);
  return kind.word === 'regex' && 'expression' in value && new RegExp(value.expression, 'u').test(path);
}

function parse(text: string): readonly Part[] {
  const tokens = text.match(/\(|\)|#"[^"]*"|"(?:[^"\\]|\\[^])*"|[^\s()"]+/g) ?? [];
  const rest = text.replaceAll(/\(|\)|#"[^"]*"|"(?:[^"\\]|\\[^])*"|[^\s()"]+/g, '').trim();
  if (rest !== '') throw new Error(`the profile has ${JSON.stringify(rest)} between its words`);
  const open: Part[][] = [[]];
  for (const token of tokens) {
    if (token === '(') open.push([]);
    else if (token === ')') {
      const list = open.pop() ?? [];
      const outer = open.at(-1);
      if (outer === undefined) throw new Error('the profile closes more than it opens');
      outer.push(list);
    } else open.at(-1)?.push(partOf(token));
  }
  if (open.length !== 1) throw new Error('the profile opens more than it closes');
  return open[0] ?? [];
}

function partOf(token: string): Part {
  if (token.startsWith('#"')) return { expression: token.slice(2, -1) };
  if (token.startsWith('"')) return { string: token.slice(1, -1).replaceAll(/\\([^])/g, '$1') };
  return { word: token };
}
