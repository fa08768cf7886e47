import { isInterpreter } from '../../shared/mcp/dangers/interpreters.ts';
import { baseName, isLauncher, isShell } from '../../shared/mcp/dangers/program_names.ts';

/** A program that runs the text of an argument, and the option before that text. */
export interface InlineCode {
  readonly program: string;
  readonly option: string;
}

const SHELL = /^(?:-[A-Za-z]*c|--command(?:=|$))/;
const POWERSHELL = /^-(?:c|e|ec$)/i;
const NODE = /^(?:-(?:e|p|pe|ep)$|--(?:eval|print)(?:=|$))/;
const PYTHON = /^-(?![XWmQ])[A-Za-z]*c/;

/** By program name, without a version suffix: the options whose value is code. */
const OPTIONS: ReadonlyMap<string, RegExp> = new Map([
  ...['node', 'nodejs', 'tsx', 'ts-node', 'ts-node-esm', 'bun'].map((name): [string, RegExp] => [name, NODE]),
  ...['python', 'pypy', 'py'].map((name): [string, RegExp] => [name, PYTHON]),
  ['deno', /^(?:eval|repl)$/],
  ['fish', /^(?:-[A-Za-z]*[cC]|--(?:init-)?command(?:=|$))/],
  ['osascript', /^-e/],
  ['powershell', POWERSHELL],
  ['pwsh', POWERSHELL],
  ['perl', /^-(?![ImMx])[A-Za-z0-9]*[eE]/],
  ['ruby', /^-(?![IrECK])[A-Za-z]*e/],
  ['php', /^(?:-[rBRE]|--(?:run|process-(?:begin|code|end))(?:=|$))/],
  ['lua', /^-e/],
  ['luajit', /^-e/],
  ['rscript', /^-e/],
  ['julia', /^(?:-[eE]|--(?:eval|print)(?:=|$))/],
  ['guile', /^-c/],
  ['elixir', /^(?:-e$|--(?:eval|rpc-eval)(?:=|$))/],
  ['groovy', /^-e/],
]);
/** `env -S` splits a text into a program and its arguments. */
const SPLIT = /^(?:-[A-Za-z0]*S|--split-string(?:=|$))/;

/**
 * The first program of a command, behind launchers such as `env` too, that is told its code by an argument; null if there is none. Words
 * behind a script are the script's.
 */
export function findInlineCode(program: string, args: readonly string[]): InlineCode | null {
  const name = baseName(program);
  const form = OPTIONS.get(name) ?? (isShell(name) ? SHELL : undefined);
  if (form !== undefined) return findOption(program, args, form);
  if (isInterpreter(name) || !isLauncher(name)) return null;
  if (name === 'env') {
    const split = args.find((word) => SPLIT.test(word));
    if (split !== undefined) return { program, option: split.slice(0, 2) };
  }
  const at = args.findIndex((word) => {
    const launched = baseName(word);
    return isShell(launched) || isLauncher(launched) || OPTIONS.has(launched);
  });
  return at < 0 ? null : findInlineCode(args[at] ?? '', args.slice(at + 1));
}

/** Options that the next word is no value of. Behind any other one, a path may be its value, and the script comes later. */
const PLAIN = /^-[euvxw]+$/;
const PLAIN_OF_PYTHON = /^-[uBEIsSOqbdPv]+$/;

function findOption(program: string, args: readonly string[], form: RegExp): InlineCode | null {
  const plain = form === PYTHON ? PLAIN_OF_PYTHON : PLAIN;
  for (const [index, word] of args.entries()) {
    if (form.test(word)) return { program, option: /^[-+]\w|^--\w+|^\w+/.exec(word)?.[0] ?? word };
    const before = args[index - 1] ?? '';
    const mayBeValue = before.startsWith('-') && !before.includes('=') && !plain.test(before);
    if (word.startsWith('/') && !mayBeValue) return null;
  }
  return null;
}
