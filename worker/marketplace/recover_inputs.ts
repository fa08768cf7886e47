import type { InputValues } from '../../shared/mcp/install/input_values.ts';
import type { InstallationPlan, PlanArgument, PlanField, Template } from '../../shared/mcp/install/plan.ts';
import { hasReference } from '../../shared/mcp/references.ts';

/** The part of a configuration that a plan creates. */
interface MadeConfiguration {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly url: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** The inputs of a configuration. */
interface Recovered {
  readonly values: InputValues;
  /** False: the plan does not create this command or URL, so somebody has changed it. */
  readonly isOfPlan: boolean;
}

type Found = readonly (readonly [input: string, value: string])[];

/**
 * Recovers the inputs that a configuration was made with from a plan, because typed inputs are not stored anywhere
 * else. References to credentials are not inputs and stay as they are.
 */
export function recoverInputs(plan: InstallationPlan, made: MadeConfiguration): Recovered {
  const command = plan.mode === 'local' ? matchCommand(plan.command, made.command) : [];
  const url = matchUrl(plan, made.url);
  const fields = [...matchFields(plan.env, made.env), ...matchFields(plan.headers, made.headers)];
  const values: Record<string, string[]> = {};
  for (const [input, value] of [...(command ?? []), ...(url ?? []), ...fields]) {
    if (!hasReference(value)) (values[input] ??= []).push(value);
  }
  return { values: toInputValues(plan, values), isOfPlan: command !== null && url !== null };
}

/** One value per input, from any of the places that it was found in. */
function toInputValues(plan: InstallationPlan, values: Readonly<Record<string, readonly string[]>>): InputValues {
  const entries = Object.entries(values).map(([name, found]) => {
    const isRepeated = plan.inputs.find((input) => input.name === name)?.isRepeated === true;
    return [name, isRepeated ? [...new Set(found)] : (found[0] ?? '')] as const;
  });
  return Object.fromEntries(entries);
}

function matchFields(fields: readonly PlanField[], made: Readonly<Record<string, string>>): Found {
  return fields.flatMap(({ name, value }) => {
    const text = Object.hasOwn(made, name) ? made[name] : undefined;
    return (text === undefined ? null : matchText(value, text)) ?? [];
  });
}

function matchUrl({ url }: InstallationPlan, made: string | null): Found | null {
  if (url === null) return made === null ? [] : null;
  const query: Template = url.query === null ? [] : [{ kind: 'text', text: '?' }, ...url.query];
  const whole: Template = [{ kind: 'text', text: 'https://' }, ...url.authority, ...url.path, ...query];
  const found = made === null ? null : matchText(whole, made);
  return found === null ? null : found.map(([input, value]) => [input, decodeText(value)] as const);
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Matches a text against a template and returns its inputs; null if it does not match. An input ends at the first
 * occurrence of the text after it, so matching is linear for every template.
 */
function matchText(template: Template, text: string): Found | null {
  const found: (readonly [string, string])[] = [];
  let at = 0;
  for (const [index, piece] of template.entries()) {
    if (piece.kind === 'text') {
      if (!text.startsWith(piece.text, at)) return null;
      at += piece.text.length;
      continue;
    }
    const end = endOfInput(text, at, template.slice(index + 1));
    if (end === null) return null;
    found.push([piece.input, text.slice(at, end)]);
    at = end;
  }
  return at === text.length ? found : null;
}

function endOfInput(text: string, from: number, [next, ...more]: Template): number | null {
  if (next === undefined) return text.length;
  // Between two adjacent inputs there is no boundary to find.
  if (next.kind === 'input') return null;
  const end = more.length === 0 ? text.length - next.text.length : text.indexOf(next.text, from);
  return end < from ? null : end;
}

/** One way to match words of a command with an argument of the plan. */
interface Reading {
  readonly words: number;
  readonly found: Found;
  /** The argument may be repeated. */
  readonly isRepeatable: boolean;
}

/** Matches a command with the arguments of its plan, of which some are optional. Null if it does not match. */
function matchCommand(plan: readonly PlanArgument[], command: readonly string[]): Found | null {
  const dead = new Set<string>();
  const from = (argument: number, word: number): Found | null => {
    const current = plan[argument];
    if (current === undefined) return word === command.length ? [] : null;
    const state = `${argument} ${word}`;
    if (dead.has(state)) return null;
    for (const { words, found, isRepeatable } of listReadings(current, command.slice(word, word + 2))) {
      const rest = (isRepeatable ? from(argument, word + words) : null) ?? from(argument + 1, word + words);
      if (rest !== null) return [...found, ...rest];
    }
    dead.add(state);
    return null;
  };
  return from(0, 0);
}

const ABSENT: Reading = { words: 0, found: [], isRepeatable: false };

function listReadings({ flag, value, when }: PlanArgument, [first, second]: readonly string[]): readonly Reading[] {
  const readFlag = (found: Found): Reading[] => (first === flag ? [{ words: 1, found, isRepeatable: false }] : []);
  if (when !== null) return [...readFlag([[when, 'true']]), ABSENT];
  if (value === null) return flag === null ? [ABSENT] : readFlag([]);
  const inputs = value.flatMap((piece) => (piece.kind === 'input' ? [piece.input] : []));
  const readValue = (words: number, text: string | undefined): Reading[] => {
    const found = text === undefined ? null : matchText(value, text);
    return found === null ? [] : [{ words, found, isRepeatable: inputs.length > 0 }];
  };
  const absent = inputs.length > 0 ? [ABSENT] : [];
  if (flag === null) return [...readValue(1, first), ...absent];
  const [only = ''] = inputs;
  const joined = first?.startsWith(`${flag}=`) === true ? first.slice(flag.length + 1) : undefined;
  const apart = first === flag ? readValue(2, second) : [];
  return [...readValue(1, joined), ...apart, ...(inputs.length === 1 ? readFlag([[only, 'true']]) : []), ...absent];
}
