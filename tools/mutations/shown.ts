import type { Mutation } from '../mutation.ts';

const RULE = 'shared/model/shown_text.ts';
const TEXT = 'shared/model/shown_text.test.ts';
const CLI = 'cli/hidden_characters.test.ts';
const PAGES = 'worker/routes/api/hidden_characters.test.ts';

/** What a person is shown: one rule about hidden characters, and the places where it cannot be forgotten. */
export const SHOWN_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Shown text',
    holds: 'a lone carriage return overwrites no line',
    file: RULE,
    text: "  if (character === '\\r') return !(keepsLines && after === '\\n');\n",
    replacement: "  if (character === '\\r') return !keepsLines;\n",
    tests: [TEXT],
  },
  {
    row: 'Shown text',
    holds: 'a symbol has at most one variation selector, and a letter has none',
    file: RULE,
    text: 'return !(PICTOGRAPH.test(before) || (KEYCAP',
    replacement: 'return !(PRESENTATION.has(before) || PICTOGRAPH.test(before) || (KEYCAP',
    tests: [TEXT],
  },
  {
    row: 'Shown text',
    holds: 'an unusual space is written out',
    file: RULE,
    text: '[\\p{C}\\p{Z}\\p{Default',
    replacement: '[\\p{C}\\p{Zl}\\p{Zp}\\p{Default',
    tests: [TEXT],
  },
  {
    row: 'Shown text',
    holds: 'combining marks do not cover neighbouring lines',
    file: RULE,
    text: 'return marks.length === MAX_MARKS && marks.every((character) => MARK.test(character));',
    replacement: 'return marks.length > MAX_MARKS;',
    tests: [TEXT],
  },
  {
    row: 'Shown text',
    holds: 'no output of a command controls a terminal, even if the command did not escape it',
    file: 'cli/terminal/output.ts',
    text: 'stdout.write(person ? printableLines(text) : text);',
    replacement: 'stdout.write(text);',
    tests: [CLI],
  },
  {
    row: 'Shown text',
    holds: 'the JSON output of a command controls no terminal',
    file: 'cli/terminal/output.ts',
    text: 'raw(json ? `${toShownJson(JSON.stringify(value, null, person ? 2 : undefined))}\\n` : text());',
    replacement: 'stdout.write(json ? `${JSON.stringify(value, null, person ? 2 : undefined)}\\n` : text());',
    tests: [CLI],
  },
  {
    row: 'Shown text',
    holds: 'no page contains invisible characters, even if the page did not escape them',
    file: 'worker/routes/console/pages.ts',
    text: 'replaceHidden(named, { keepsLines: true, write: markInMarkup })',
    replacement: 'named',
    tests: [PAGES],
  },
  {
    row: 'Shown text',
    holds: 'a page of a sign-in repeats no code of its address',
    file: 'worker/pages/frame/shell.ts',
    text: 'const WITHOUT_QUERY = /^\\/(?:device$|auth\\/)/;',
    replacement: 'const WITHOUT_QUERY = /^\\/device$/;',
    tests: ['worker/routes/console/console.test.ts'],
  },
];
