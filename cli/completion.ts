import { Argument, type Command } from 'commander';

/** What can follow a command: subcommands, options, and the fixed values of options. */
interface CompletionNode {
  readonly path: readonly string[];
  readonly description: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletionOption[];
}

interface CompletionOption {
  readonly names: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** What is stored can follow these commands, and options of theirs: each with the command that lists it, one name first in each line. */
const LISTED: Readonly<Record<string, string>> = {
  'secret set': 'secret list',
  'secret rm': 'secret list',
  'binding show': 'binding list',
  'binding rm': 'binding list',
  'binding effect': 'binding list',
  'binding templates': 'binding templates',
  'binding add --from': 'binding templates',
  'binding add --credential': 'secret list',
  'run --use': 'secret list',
  'launch --use': 'secret list',
  'run --mcp': 'mcp list',
  'launch --mcp': 'mcp list',
  'explain --use': 'secret list',
  'audit list --session': 'sessions list',
  'audit tail --session': 'sessions list',
  'allow --from-session': 'sessions list',
  'sessions show': 'sessions list',
  'sessions stop': 'sessions list',
  'sessions resume': 'sessions list',
  'sessions logs': 'sessions list',
  'connector show': 'connector list',
  'connector remove': 'connector list',
  'connector test': 'connector list',
  'connector authorize': 'connector list',
  'connector credential set': 'connector list',
  'connector credential rm': 'connector list',
  'connector install': 'connector catalog',
  'connector catalog': 'connector catalog',
  launch: 'agents list',
  login: 'agents list',
  'login --secret': 'secret list',
  'connector install --secret': 'secret list',
  'connector credential set --secret': 'secret list',
  run: 'agents list',
};
/** Fixed words that can follow, besides what is listed, where others are possible too. */
const WORDS: Readonly<Record<string, string>> = {
  login: 'gh',
  'login --as': 'account key subscription',
  explain: 'GET HEAD POST PUT PATCH DELETE',
  seal: 'anthropic aws bitbucket cloudflare docker gemini github gitlab jira linear notion npm openai pypi sentry slack stripe',
};

interface Offered {
  readonly after: string;
  /** For each shell: words and the output of a list. */
  readonly list: string | undefined;
  readonly words: string;
}
const OFFERED = [...new Set([...Object.keys(LISTED), ...Object.keys(WORDS)])].map((after): Offered => ({
  after,
  list: LISTED[after],
  words: WORDS[after] ?? '',
}));
const OFFERED_COMMANDS = OFFERED.filter(({ after }) => !after.includes('--'));
const OFFERED_OPTIONS = OFFERED.filter(({ after }) => after.includes('--'));

/** The words, and what `command` writes around the list. */
function offer({ list, words }: Offered, command: (list: string) => string): string {
  return [words, list === undefined ? '' : command(list)].filter((part) => part !== '').join(' ');
}
const inBash = (list: string): string => `$(_svc_list ${list})`;
const inZsh = (list: string): string => `\${(f)"$(_svc_list ${list})"}`;
const inFish = (list: string): string => `(__svc_list ${list})`;

/**
 * The first column of a list. Only characters of names pass, because shells expand what they complete, and others may have
 * named a thing; a pattern of hosts would be expanded too.
 */
const LIST_PIPE = "2>/dev/null | cut -f1 | sed 's|^vault://||' | grep -E '^[A-Za-z0-9._/-]+$'";

/** Adds `svc completion SHELL`; `print` receives the script. */
export function addCompletionCommand(program: Command, print: (script: string) => void): void {
  program
    .command('completion')
    .description('print a completion script; its first lines say how to install it')
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS))
    .action((shell: Shell) => print(completionScript(program, shell)));
}

/** Every command of the tree, starting with the program itself. */
export function completionNodes(program: Command): readonly CompletionNode[] {
  const visit = (command: Command, path: readonly string[]): CompletionNode[] => {
    const visible = command
      .createHelp()
      .visibleCommands(command)
      .filter((child) => child.name() !== 'help');
    const own = command.createHelp().visibleOptions(command).map(optionOf);
    const inherited = command === program ? [] : program.options.filter((option) => !option.hidden).map(optionOf);
    const node = {
      path,
      description: command.description(),
      commands: visible.map((child) => ({ name: child.name(), description: child.description() })),
      options: [...own, ...inherited],
    };
    return [node, ...visible.flatMap((child) => visit(child, [...path, child.name()]))];
  };
  return visit(program, []);
}

function optionOf(option: Command['options'][number]): CompletionOption {
  return {
    names: [option.short, option.long].filter((name) => name !== undefined),
    description: option.description,
    takesValue: option.required || option.optional,
    choices: option.argChoices ?? [],
  };
}

/** Generates the script for one shell from the command tree. */
export function completionScript(program: Command, shell: Shell): string {
  const nodes = completionNodes(program);
  if (shell === 'bash') return bashScript(nodes);
  return shell === 'zsh' ? zshScript(nodes) : fishScript(nodes);
}

function commandsAfter(node: CompletionNode): string {
  return node.commands.map((command) => command.name).join(' ');
}

function optionsAfter(node: CompletionNode): string {
  return node.options.flatMap((option) => option.names).join(' ');
}

/** `case` arms from a command path to what may follow it. */
function caseArms(nodes: readonly CompletionNode[], arm: (node: CompletionNode) => string): string {
  return nodes.map((node) => `    '${node.path.join(' ')}') ${arm(node)} ;;`).join('\n');
}

/** `case` arms from an option to its values, those of every command that has it. */
function choiceArms(nodes: readonly CompletionNode[], arm: (choices: string) => string): string {
  const seen = new Map<string, readonly string[]>();
  for (const option of nodes.flatMap((node) => node.options).filter(({ takesValue }) => takesValue)) {
    for (const name of option.names) seen.set(name, [...(seen.get(name) ?? []), ...option.choices]);
  }
  return [...seen].map(([name, choices]) => `    ${name}) ${arm([...new Set(choices)].join(' '))} ;;`).join('\n');
}

/** Shell code that collects the commands typed so far into `typed`; words after an option that takes a value are not commands. */
function pathLoop(nodes: readonly CompletionNode[]): string {
  const paths = nodes.filter((node) => node.path.length > 0).map((node) => `'${node.path.join(' ')}'`);
  return `case "\${typed:+$typed }$word" in ${paths.join(' | ')}) typed="\${typed:+$typed }$word" ;; esac`;
}

function bashScript(nodes: readonly CompletionNode[]): string {
  return `# svc completion for bash: svc completion bash > ~/.local/share/bash-completion/completions/svc
_svc() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} typed='' commands='' options='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $word == -- ]]; then
      COMPREPLY=($(compgen -c -- "$cur"))
      return
    fi
    ${pathLoop(nodes)}
  done
  case "$typed $prev" in
${OFFERED_OPTIONS.map((each) => `    '${each.after}') COMPREPLY=($(compgen -W "${offer(each, inBash)}" -- "$cur")); return ;;`).join('\n')}
  esac
  case $prev in
${choiceArms(nodes, (choices) => (choices === '' ? 'COMPREPLY=($(compgen -f -- "$cur")); return' : `COMPREPLY=($(compgen -W '${choices}' -- "$cur")); return`))}
  esac
  case $typed in
${caseArms(nodes, (node) => `commands='${commandsAfter(node)}' options='${optionsAfter(node)}'`)}
  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
    return
  fi
  COMPREPLY=($(compgen -W "$commands" -- "$cur"))
  case $typed in
${OFFERED_COMMANDS.map((each) => `    '${each.after}') COMPREPLY+=($(compgen -W "${offer(each, inBash)}" -- "$cur")) ;;`).join('\n')}
  esac
  if [[ -z $cur && \${#COMPREPLY[@]} -eq 0 ]]; then COMPREPLY=($(compgen -W "$options")); fi
}
_svc_list() { svc "$@" ${LIST_PIPE}; }
complete -F _svc svc
`;
}

function zshScript(nodes: readonly CompletionNode[]): string {
  const commandsOf = (node: CompletionNode): string =>
    node.commands.map(({ name, description }) => zshWord(name, description)).join(' ');
  const optionsOf = (node: CompletionNode): string =>
    node.options.flatMap((option) => option.names.map((name) => zshWord(name, option.description))).join(' ');
  return `#compdef svc
# svc completion for zsh: svc completion zsh > a folder of $fpath, as _svc
_svc() {
  local typed='' word i
  local -a found options
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    if [[ $word == -- ]]; then
      _command_names -e
      return
    fi
    ${pathLoop(nodes)}
  done
  case "$typed \${words[CURRENT-1]}" in
${OFFERED_OPTIONS.map((each) => `    '${each.after}') compadd -- ${offer(each, inZsh)}; return ;;`).join('\n')}
  esac
  case \${words[CURRENT-1]} in
${choiceArms(nodes, (choices) => (choices === '' ? '_files; return' : `compadd -- ${choices}; return`))}
  esac
  case $typed in
${caseArms(nodes, (node) => `found=(${commandsOf(node)}) options=(${optionsOf(node)})`)}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then
    _describe -o 'option' options
    return
  fi
  case $typed in
${OFFERED_COMMANDS.map((each) => `    '${each.after}') found+=(${offer(each, inZsh)}) ;;`).join('\n')}
  esac
  if [[ -z \${words[CURRENT]} && \${#found} -eq 0 ]]; then found=($options); fi
  _describe 'svc' found
}
_svc_list() { svc "$@" ${LIST_PIPE}; }
if [[ $funcstack[1] == _svc ]]; then _svc "$@"; else compdef _svc svc; fi
`;
}

function zshWord(name: string, description: string): string {
  return singleQuoted(`${name.replaceAll(':', '\\:')}:${description.replaceAll(':', '\\:')}`);
}

function fishScript(nodes: readonly CompletionNode[]): string {
  const lines = nodes.flatMap((node) => {
    const at = singleQuoted(`__svc_at ${node.path.join(' ')}`.trimEnd());
    const commands = node.commands.map(
      ({ name, description }) => `complete -c svc -f -n ${at} -a ${name} -d ${singleQuoted(description)}`,
    );
    return [...commands, ...node.options.map((option) => fishOption(at, option))];
  });
  lines.push(
    ...OFFERED_COMMANDS.map((each) => `complete -c svc -f -n '__svc_at ${each.after}' -a '${offer(each, inFish)}'`),
    ...OFFERED_OPTIONS.map((each) => {
      const [at = '', option = ''] = each.after.split(' --');
      return `complete -c svc -f -n '__svc_at ${at}' -l ${option} -r -a '${offer(each, inFish)}'`;
    }),
  );
  const paths = nodes.filter((node) => node.path.length > 0).map((node) => `'${node.path.join(' ')}'`);
  return `# svc completion for fish: svc completion fish > ~/.config/fish/completions/svc.fish
function __svc_at
  set -l at
  contains -- -- (commandline -opc); and return 1
  for word in (commandline -opc)[2..-1]
    contains -- (string join -- ' ' $at $word) ${paths.join(' ')}; and set -a at $word
  end
  test "$at" = "$argv"
end
function __svc_list
  svc $argv ${LIST_PIPE}
end
${lines.join('\n')}
`;
}

function fishOption(at: string, option: CompletionOption): string {
  const names = option.names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  const value = option.takesValue ? ' -r' : '';
  const choices = option.choices.length > 0 ? ` -f -a ${singleQuoted(option.choices.join(' '))}` : '';
  return `complete -c svc -n ${at} ${names.join(' ')}${value}${choices} -d ${singleQuoted(option.description)}`;
}

function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
