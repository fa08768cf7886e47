import { TEXT_MARKS, type TextMark } from '../../model/mcp_tool.ts';
import { listHiddenCharacters } from '../../model/shown_text.ts';

/** Marks that honest tools have too. They are shown and hold nothing up. */
const NOTES: ReadonlySet<TextMark> = new Set(['encoded_blob', 'long_text']);

/** True if a tool with these marks waits for a person even in a server's first list. */
export function hasWarning(marks: readonly TextMark[]): boolean {
  return marks.some((mark) => !NOTES.has(mark));
}

/** For a person: what each mark means, after "it". */
export const MARK_WORDS: Readonly<Record<TextMark, string>> = {
  hidden_characters: 'has invisible characters, or characters that reorder others',
  terminal_escape: 'has codes that control a terminal',
  hidden_markup: 'has text that many programs do not display (a comment or hidden markup)',
  overrides_instructions: 'speaks to the model about its instructions',
  keeps_from_person: 'tells the model to keep something from you',
  claims_permission: 'says that you have already agreed, or need not be asked',
  reads_secrets: 'asks for keys, passwords, or files that usually have them',
  sends_data: 'tells the model to send data somewhere',
  steers_other_tools: 'says when or how to use other tools',
  lookalike_name: 'has letters that look like others',
  encoded_blob: 'has a long encoded text',
  long_text: 'is very long',
};

/** Texts of more characters are marked as long. */
const LONG_TEXT = 8_000;
/** How much of a text is searched. The patterns are linear, so this only bounds the work. */
const MAX_SEARCHED = 256 * 1024;

/** At most this many characters lie between the words of one pattern. */
const gap = (characters: number): string => String.raw`[^.!?\n]{0,${characters}}?`;
const any = (...words: readonly string[]): string => `(?:${words.join('|')})`;
const said = (...parts: readonly string[]): RegExp => new RegExp(parts.join(''), 'iu');

const WHO = any(
  'the user',
  'users?',
  'the human',
  'the person',
  'the operator',
  'the customer',
  'the developer',
  'anyone',
  'them',
);
const NOT = String.raw`\b(?:do not|don't|dont|never|must not|should not|shouldn't|avoid|without)\s+`;
/** Files that have secrets or the person's configuration. */
const SECRET_FILE = any(
  String.raw`\.ssh\b`,
  String.raw`\bid[_ ](?:rsa|ed25519|ecdsa)\b`,
  String.raw`\bauthorized_keys\b`,
  String.raw`(?:^|[\s"'\x60/~(])\.env\b(?!\.example)`,
  String.raw`\.aws[/\\]credentials\b`,
  String.raw`\.(?:kube[/\\]config|netrc|npmrc|pypirc|git-credentials|docker[/\\]config\.json|bash_history|zsh_history)\b`,
  String.raw`[/\\]etc[/\\](?:passwd|shadow)\b`,
  String.raw`\.cursor[/\\]mcp\.json\b`,
  String.raw`\bclaude_desktop_config\.json\b`,
  String.raw`\bmcp\.json\b`,
  String.raw`\bkeychain\b`,
);
const SECRET_WORD = any(
  String.raw`\b(?:private|ssh|api|secret|access|encryption|signing) keys?\b`,
  String.raw`\b(?:passwords?|passphrases?|credentials?|seed phrases?|session cookies?|environment variables)\b`,
  String.raw`\b(?:access|auth|bearer|session|refresh|github) tokens?\b`,
  String.raw`\b(?:system prompt|(?:chat|conversation) (?:history|log)|(?:full|entire|whole) conversation)\b`,
);
const TAKE =
  'read|reading|cat|open|load|include|pass|attach|append|insert|put|send|copy|provide|paste|collect|gather|extract|dump|print|supply|return|share';
/** A tool may well ask for its own key, so fewer verbs count here. */
const TAKE_WORD = 'include|attach|append|send|copy|paste|collect|gather|extract|dump|exfiltrate|read out|look up';

interface Pattern {
  readonly mark: TextMark;
  readonly pattern: RegExp;
}

/** What published attacks have in common. Text is folded before: see {@link fold}. */
const PATTERNS: readonly Pattern[] = [
  {
    mark: 'hidden_markup',
    pattern:
      /<!--|\[\/\/\]:\s*#|display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|color\s*:\s*transparent/iu,
  },
  {
    mark: 'overrides_instructions',
    pattern: said(
      String.raw`\b(?:ignore|disregard|forget|override|overrule|bypass|discard|stop following)\b`,
      gap(40),
      String.raw`\b(?:instructions?|prompts?|rules|guidelines|guardrails|directives?|polic(?:y|ies)|constraints|safety (?:checks?|measures?))\b`,
    ),
  },
  {
    mark: 'overrides_instructions',
    pattern:
      /<\/?\s*(?:important|system|sys|instructions?|critical|secret|admin|hidden|assistant|developer)\s*\/?>|<\|[a-z_]{2,20}\|>|\[\/?(?:inst|system)\]|<<\/?sys>>|^\s*(?:#+\s*)?(?:system|developer|assistant)\s*(?:message|prompt|note|override)?\s*:/imu,
  },
  {
    mark: 'overrides_instructions',
    pattern:
      /\b(?:you are now (?:an?|in|the|no longer|dan)\b|new (?:system )?(?:instructions?|directives?)\s*:|from now on,? you\b|as an? (?:ai(?: agent| assistant| model)?|language model|llm|agent|assistant),? you (?:must|should|will)|(?:developer|admin|god|debug|maintenance) mode (?:is |now )?(?:enabled|on|active)|(?:(?:instructions?|messages?|notes?) (?:for|to) (?:the |any |all )?(?:ai\b|ai (?:agents?|assistants?)|llms?|language models?|models?\b|assistants?\b)))/iu,
  },
  {
    mark: 'overrides_instructions',
    pattern:
      /\b(?:ignor(?:iere|a|e[rz]?) (?:alle |todas? |las |les |toutes? |as )*(?:vorherigen|bisherigen|instrucciones|instructions|instru[cç](?:ões|ciones)))|(?:忽略|无视|無視)[^。]{0,12}(?:指令|指示|提示)|(?:игнорируй|забудь)[^.]{0,20}(?:инструкци|указани)/iu,
  },
  {
    mark: 'keeps_from_person',
    pattern: said(
      NOT,
      any(
        'tell',
        'telling',
        'mention',
        'mentioning',
        'inform',
        'informing',
        'notify',
        'notifying',
        'alert',
        'alerting',
        'reveal',
        'revealing',
        'show',
        'showing',
        'disclose',
        'disclosing',
        'explain',
        'explaining',
        'report',
        'reporting',
        'say',
        'saying',
        'let',
        'letting',
        'warn',
        'warning',
        'discuss',
      ),
      String.raw`\b`,
      gap(50),
      String.raw`\b`,
      WHO,
      String.raw`\b`,
    ),
  },
  {
    mark: 'keeps_from_person',
    pattern:
      /\b(?:(?:without|so that) (?:the )?(?:user|human|person)(?:'s)? (?:knowing|noticing|knowledge|awareness|seeing|does not (?:notice|see|know))|(?:hide|conceal|keep) (?:this|it|that|these|the (?:fact|call|step|side effect|details?))\b[^.!?\n]{0,30}\b(?:from (?:the )?(?:user|human|person)|hidden|secret|confidential|to yourself)|(?:user|human|person) (?:must|should|need|does|will) not (?:know|see|notice|learn|be (?:told|aware|informed|bothered))|(?:do not|don't|never) (?:mention|reveal|disclose|talk about|refer to|repeat|acknowledge) (?:this|these|that|it|the (?:above|following|instructions?|note|step|tag|existence))\b)/iu,
  },
  {
    mark: 'claims_permission',
    pattern:
      /\b(?:(?:do not|don't|never|no need to|without|skip|no) (?:ask(?:ing)?|request(?:ing)?|requir(?:e|ing)|seek(?:ing)?|wait(?:ing)? for|prompt(?:ing)?)?\s*(?:(?:for|the|any|user|human|further|additional|explicit|user's|a) )*(?:confirmation|permission|approval|consent)\b|(?:user|human|administrator|admin|operator|owner|security team) (?:has |have |had )?(?:already |previously |pre-?)\s?(?:approved|authori[sz]ed|confirmed|agreed|consented|granted|allowed|given)|(?:this|the|every|any) (?:action|operation|call|request|tool) (?:is|was|has been) (?:pre-?|already )(?:approved|authori[sz]ed)|auto-?approve)/iu,
  },
  { mark: 'reads_secrets', pattern: said(String.raw`\b(?:`, TAKE, String.raw`)\b`, gap(80), SECRET_FILE) },
  { mark: 'reads_secrets', pattern: said(String.raw`\b(?:`, TAKE_WORD, String.raw`)\b`, gap(60), SECRET_WORD) },
  {
    mark: 'reads_secrets',
    pattern: said(
      SECRET_FILE,
      gap(60),
      String.raw`\b(?:must|should|need to|has to|have to) be\b`,
      gap(20),
      String.raw`\b(?:passed|included|provided|sent|attached|appended|read|supplied|put|pasted)\b`,
    ),
  },
  {
    mark: 'reads_secrets',
    pattern:
      /\.ssh[/\\]|\bid_(?:rsa|ed25519|ecdsa)\b|\.aws[/\\]credentials|\.cursor[/\\]mcp\.json|claude_desktop_config|[/\\]etc[/\\](?:passwd|shadow)\b/iu,
  },
  {
    mark: 'sends_data',
    pattern: said(
      String.raw`\b(?:send|post|forward|upload|transmit|exfiltrate|submit|report|deliver|copy|cc|bcc|leak|relay|email|e-mail|mirror)\b`,
      gap(80),
      String.raw`(?:\bto\b|\bat\b|\bvia\b|=)\s*(?:the )?(?:address |endpoint |url |server |webhook )?["'\x60<(]?(?:https?://|[\w.+-]+@[\w-]+\.[a-z]{2,}|\d{1,3}(?:\.\d{1,3}){3}\b|\+\d{8,})`,
    ),
  },
  {
    mark: 'sends_data',
    pattern:
      /!\[[^\]]{0,80}\]\(\s*https?:\/\/[^)\s]{0,300}[?&/][^)\s]{0,200}(?:\{|\$|<|%7b|\[)|\b(?:curl|wget|nc|invoke-webrequest)\b[^\n]{0,120}(?:https?:\/\/|\|\s*(?:ba)?sh\b)|\b(?:exfiltrate|data exfiltration to)\b/iu,
  },
  {
    mark: 'steers_other_tools',
    pattern:
      /\b(?:before (?:using|calling|invoking|running|executing) (?:any|all|every|each|other|this|the other)\b[^.!?\n]{0,40}\b(?:tools?|functions?|commands?)\b|(?:call|use|run|invoke|execute) this (?:tool|function)? ?(?:first|before (?:any|every|each|all|answering|responding|other))|(?:instead of|rather than|in place of|replaces?|supersedes?|never use|do not use|don't use|stop using|deprecated[:,]? use) (?:the |any |all )?(?:other |built-?in |native |official |original |existing |standard )*(?:[\w-]{1,60} )?(?:tools?|functions?|servers?)\b|(?:when(?:ever)?|each time|every time|if|after|once) (?:you (?:use|call|invoke|run)|(?:the |any |a )?(?:\w+ )?(?:tool|function) [\w`'"-]{0,60}\s?(?:is|was|gets|has been) (?:used|called|invoked|run))|(?:all|every|any) (?:other|subsequent|future|later|following) (?:tools?|tool calls?|calls?|messages?|emails?|responses?|requests?|answers?)\b[^.!?\n]{0,40}\b(?:must|should|shall|need|have to|are required)|(?:must|should|shall|has to|needs to) (?:be )?(?:always )?(?:be )?(?:called|used|invoked|run|executed) (?:first|before (?:any|every|each|all|other))|always (?:call|use|run|invoke|prefer) this (?:tool|function|server))/iu,
  },
  {
    mark: 'encoded_blob',
    pattern:
      /[A-Za-z0-9+/_-]{120,}={0,2}|(?:[0-9a-f]{2}[\s:]?){100,}|(?:\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|%[0-9a-f]{2}|&#x?[0-9a-f]{2,6};){12,}|\bdata:[\w/+.-]+;base64,/iu,
  },
];

/** `<U+200B>`: how a hidden character is written out for a client. */
const WRITTEN_OUT = /<U\+[0-9A-F]{4,6}>/u;
/** The beginning of a code, as its character, as clients get it, or as a program would write it. */
const ESCAPE_CODES = ['\u001b', '\u009b', '<u+001b>', '<u+009b>', '\\x1b', '\\u001b', '\\033'];

/** The marks of one text, each once. A text without marks can still mislead: only its wording is searched, not its meaning. */
export function markText(text: string): readonly TextMark[] {
  const searched = text.slice(0, MAX_SEARCHED);
  const marks = new Set<TextMark>();
  if (listHiddenCharacters(searched).length > 0 || WRITTEN_OUT.test(searched)) marks.add('hidden_characters');
  const lower = searched.toLowerCase();
  if (ESCAPE_CODES.some((code) => lower.includes(code))) marks.add('terminal_escape');
  if (text.length > LONG_TEXT) marks.add('long_text');
  const forms = [fold(searched), fold(searched.replaceAll(WRITTEN_OUT_ALL, ''))];
  for (const { mark, pattern } of PATTERNS) if (forms.some((form) => pattern.test(form))) marks.add(mark);
  return TEXT_MARKS.filter((mark) => marks.has(mark));
}

const WRITTEN_OUT_ALL = /<U\+[0-9A-F]{4,6}>/gu;
const SPACES = /\s+/gu;

/** Letters of other scripts, each with the Latin one that it looks like. */
const LOOKALIKES: ReadonlyMap<string, string> = new Map(
  'аa ɑa αa еe єe οo оo օo рp ρp сc ϲc уy υu хx χx іi ιi ɩi јj ѕs һh ԁd ոn ѵv νv ԝw кk κk мm тt τt вb нh гr'
    .split(' ')
    .map((pair) => [pair.slice(0, -1), pair.slice(-1)]),
);

/** The text as its reader sees it: compatible forms and look-alikes as plain letters, no hidden characters, one space. */
function fold(text: string): string {
  const plain = text
    .normalize('NFKC')
    .replaceAll(/[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Mn}]/gu, '')
    .replaceAll(/[\u2018\u2019\u02bc]/gu, "'");
  const latin = Array.from(plain, (letter) => LOOKALIKES.get(letter.toLowerCase()) ?? letter).join('');
  // Cyrillic and Greek prose stays searchable as it is written.
  const both = latin === plain ? plain : `${latin}\n\n${plain}`;
  return both.replaceAll(SPACES, (spaces) => (spaces.indexOf('\n') === spaces.lastIndexOf('\n') ? ' ' : '\n\n'));
}

/** A name that is written with more than plain letters can pass for another one. */
export function markName(name: string): readonly TextMark[] {
  const marks = markText(name.replaceAll('_', ' '));
  return isPlainName(name) ? marks : [...marks, 'lookalike_name'];
}

function isPlainName(name: string): boolean {
  const scripts = [
    /\p{Script=Latin}/u,
    /\p{Script=Cyrillic}/u,
    /\p{Script=Greek}/u,
    /\p{Script=Armenian}/u,
    /\p{Script=Cherokee}/u,
  ];
  const used = scripts.filter((script) => script.test(name)).length;
  return (
    used <= 1 && name === name.normalize('NFKC') && (used === 0 || /\p{Script=Latin}/u.test(name) || name.length > 12)
  );
}
