import type { CliContext, OutputStream } from '../context.ts';
import { cutShownText, escapeHidden, toPrintable, replaceHidden, toShownJson } from '../../shared/model/shown_text.ts';

const ESCAPE = String.fromCharCode(0x1b);
const STYLES = { bold: '1', dim: '2', red: '31', green: '32', yellow: '33', cyan: '36' } as const;
export type Style = keyof typeof STYLES;
export type Paint = (style: Style, text: string) => string;

type Env = CliContext['env'];

/** Colours for a terminal. Off with NO_COLOR, TERM=dumb or a pipe (FORCE_COLOR overrides the pipe). */
export function createPainter(stream: OutputStream, env: Env): Paint {
  const forced = env['FORCE_COLOR'] !== undefined && env['FORCE_COLOR'] !== '0' && env['FORCE_COLOR'] !== '';
  const wanted = forced || (stream.isTTY === true && env['TERM'] !== 'dumb');
  const refused = env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '';
  if (!wanted || refused) return (_style, text) => text;
  return (style, text) => `${ESCAPE}[${STYLES[style]}m${text}${ESCAPE}[0m`;
}

/** The styles of {@link createPainter}; any other escape sequence may hide text or control the terminal. */
const STYLE = new RegExp(`(${ESCAPE}\\[(?:0|${Object.values(STYLES).join('|')})m)`);

/** Escapes lines of output for a terminal: our own styles and line breaks stay, all other control characters are escaped. */
export function printableLines(text: string): string {
  return text
    .split(STYLE)
    .map((part, index) => (index % 2 === 1 ? part : replaceHidden(part, { keepsLines: true, write: escapeHidden })))
    .join('');
}

/** Maximum width of a cell in a table for a person. */
const MOST_CELL = 1_000;

/** A column: its heading, and the function that returns a row's cell. */
export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  readonly style?: (row: Row) => Style | null;
}

/**
 * Formats rows for a person (a table with headings) or for a program (tab-separated, no headings). `empty` is printed for a
 * person if there are no rows.
 */
export function formatRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  target: { readonly table: boolean; readonly paint: Paint; readonly empty: string },
): string {
  const formatShown = (text: string): string =>
    target.table ? cutShownText(toPrintable(text), MOST_CELL) : toPrintable(text);
  const cells = rows.map((row) => columns.map((column) => formatShown(column.cell(row))));
  if (!target.table) return cells.map((line) => `${line.join('\t')}\n`).join('');
  if (rows.length === 0) return `${target.empty}\n`;
  const widths = columns.map((column, at) => Math.max(column.title.length, ...cells.map((line) => width(line[at]))));
  const pad = (text: string, at: number): string =>
    at === columns.length - 1 ? text : text + ' '.repeat((widths[at] ?? 0) - width(text) + 2);
  const heading = columns.map((column, at) => target.paint('bold', pad(column.title, at))).join('');
  const lines = rows.map((row, index) =>
    columns
      .map((column, at) => {
        const style = column.style?.(row);
        const text = pad(cells[index]?.[at] ?? '', at);
        return style ? target.paint(style, text) : text;
      })
      .join(''),
  );
  const titled = columns.some(({ title }) => title !== '');
  return [...(titled ? [heading] : []), ...lines].map((line) => `${line.trimEnd()}\n`).join('');
}

function width(text: string | undefined): number {
  return Array.from(text ?? '').length;
}

/** A command's output: data goes to stdout in the requested format, notes go to stderr. */
export interface Printer {
  readonly json: boolean;
  /** True if stdout is a terminal: tables, headings and advice are for a person. */
  readonly person: boolean;
  readonly paint: Paint;
  /** Prints the command's data as JSON, or the result of `text`. */
  data(value: unknown, text: () => string): void;
  rows<Row>(value: unknown, rows: readonly Row[], columns: readonly Column<Row>[], empty: string): void;
  /** Prints one JSON document per line with --json, else `text`. */
  line(value: unknown, text: string): void;
  raw(text: string): void;
  note(text: string): void;
  warn(text: string): void;
}

/** The printer of one command. */
export function printerFor(context: CliContext, options: { readonly json?: boolean }): Printer {
  const { stdout, stderr } = context;
  const json = options.json === true;
  const person = stdout.isTTY === true;
  const paint = createPainter(stdout, context.env);
  const paintError = createPainter(stderr, context.env);
  const raw = (text: string): void => {
    stdout.write(person ? printableLines(text) : text);
  };
  const data = (value: unknown, text: () => string): void =>
    raw(json ? `${toShownJson(JSON.stringify(value, null, person ? 2 : undefined))}\n` : text());
  return {
    json,
    person,
    paint,
    raw,
    data,
    rows: (value, rows, columns, empty) =>
      data(value, () => formatRows(rows, columns, { table: person, paint, empty })),
    line: (value, text) => raw(`${json ? toShownJson(JSON.stringify(value)) : text}\n`),
    note: (text) => {
      stderr.write(`${printableLines(text)}\n`);
    },
    warn: (text) => {
      stderr.write(`${paintError('yellow', 'warning:')} ${printableLines(text)}\n`);
    },
  };
}
