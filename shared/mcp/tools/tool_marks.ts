import { type ToolDefinition, UNREAD_MEMBERS } from './tool_definition.ts';
import { TEXT_MARKS, type TextMark } from '../../model/mcp_tool.ts';
import { markName, markText } from './text_marks.ts';

/** The marks of a tool, and where each was found. */
interface ToolMark {
  readonly mark: TextMark;
  /** The member that has it, such as `inputSchema.properties.path.description`. */
  readonly where: string;
}

const MAX_MARKS = 50;
/** How many texts of one tool are searched by themselves; the others are searched as one. */
const MAX_TEXTS = 5_000;

/**
 * Everything in a definition that a person should know of: its description and title, and each key and text of its schemas,
 * because a model reads all of it. A sentence that is spread over several members is searched as one text too.
 */
export function markTool(tool: ToolDefinition): readonly ToolMark[] {
  const texts = listTexts(tool);
  const found = texts.flatMap(({ where, text, isName }) =>
    (isName ? markName(text) : markText(text)).map((mark) => ({ mark, where })),
  );
  const prose = texts.filter(({ isName }) => !isName).map(({ text }) => text);
  const whole = markText(prose.join(' ')).filter((mark) => SPREAD.has(mark));
  const apart = whole
    .filter((mark) => !found.some((one) => one.mark === mark))
    .map((mark) => ({ mark, where: 'several members together' }));
  return firstOfEachKind([...found, ...apart]).slice(0, MAX_MARKS);
}

/** Every kind comes before repeated ones, so that a server cannot crowd a warning out with others. */
function firstOfEachKind(marks: readonly ToolMark[]): readonly ToolMark[] {
  const firsts = new Set(TEXT_MARKS.map((kind) => marks.find(({ mark }) => mark === kind)));
  return [...marks.filter((one) => firsts.has(one)), ...marks.filter((one) => !firsts.has(one))];
}

/** The kinds of marks, each once. */
export function marksOf(marks: readonly ToolMark[]): readonly TextMark[] {
  return TEXT_MARKS.filter((mark) => marks.some((one) => one.mark === mark));
}

/** Marks that a sentence over several members can have. Others would join words that have nothing to do with each other. */
const SPREAD: ReadonlySet<TextMark> = new Set(['overrides_instructions', 'keeps_from_person']);

interface FoundText {
  readonly where: string;
  readonly text: string;
  /** A name of the tool or of an input. */
  readonly isName: boolean;
}

/** Data of a schema, in which a long code is ordinary. */
const STRUCTURE: ReadonlySet<string> = new Set([
  '$schema',
  '$ref',
  '$id',
  'type',
  'format',
  'pattern',
  'contentEncoding',
]);

function listTexts(tool: ToolDefinition): readonly FoundText[] {
  const found: FoundText[] = [];
  const rest: string[] = [];
  const note = (text: FoundText): void => {
    if (found.length < MAX_TEXTS) found.push(text);
    else rest.push(text.text);
  };
  const visit = (value: unknown, where: string, key: string, ofProperties: boolean): void => {
    if (typeof value === 'string') {
      if (!STRUCTURE.has(key) || ofProperties) note({ where, text: value, isName: where === 'name' });
      return;
    }
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) visit(item, `${where}.${index}`, key, false);
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      const path = where === '' ? name : `${where}.${name}`;
      if (where === '' && UNREAD_MEMBERS.has(name)) continue;
      if (key === 'properties') note({ where: path, text: name, isName: true });
      visit(member, path, name, key === 'properties');
    }
  };
  visit(tool, '', '', false);
  return rest.length === 0 ? found : [...found, { where: 'many more members', text: rest.join('\n'), isName: false }];
}
