import { quoteWord, refuse, warn, type Danger } from './danger.ts';
import { mountDanger, volumeDanger } from './docker_mount.ts';

/** An option of `docker run` that a server may use. An option without a row here is refused. */
interface DockerOption {
  readonly names: readonly string[];
  readonly takesValue: boolean;
  readonly danger?: (value: string) => Danger | null;
}

const ENV_ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_.-]*(?:=|$)/;

const OPTIONS: readonly DockerOption[] = [
  { names: ['-i', '--interactive'], takesValue: false },
  { names: ['--rm'], takesValue: false },
  { names: ['--init'], takesValue: false },
  { names: ['--read-only'], takesValue: false },
  { names: ['-q', '--quiet'], takesValue: false },
  { names: ['-e', '--env'], takesValue: true, danger: matchPattern(ENV_ASSIGNMENT, 'the name of a variable') },
  { names: ['--name'], takesValue: true, danger: matchPattern(/^[a-z0-9][a-z0-9_.-]*$/i, 'a name') },
  { names: ['-w', '--workdir'], takesValue: true, danger: matchPattern(/^\/[^:]*$/, 'an absolute directory') },
  {
    names: ['-u', '--user'],
    takesValue: true,
    danger: matchPattern(/^[a-z0-9_][a-z0-9_.-]*(?::[a-z0-9_][a-z0-9_.-]*)?$/i, 'a user'),
  },
  { names: ['-m', '--memory'], takesValue: true, danger: matchPattern(/^\d+[bkmg]?$/i, 'a size') },
  { names: ['--cpus'], takesValue: true, danger: matchPattern(/^\d+(?:\.\d+)?$/, 'a number') },
  { names: ['--pids-limit'], takesValue: true, danger: matchPattern(/^\d+$/, 'a number') },
  { names: ['--shm-size'], takesValue: true, danger: matchPattern(/^\d+[bkmg]?$/i, 'a size') },
  { names: ['--stop-timeout'], takesValue: true, danger: matchPattern(/^\d+$/, 'a number of seconds') },
  { names: ['--platform'], takesValue: true, danger: matchPattern(/^[a-z0-9]+(?:\/[a-z0-9]+){0,2}$/, 'a platform') },
  {
    names: ['--pull'],
    takesValue: true,
    danger: matchPattern(/^(?:always|missing|never)$/, '"always", "missing" or "never"'),
  },
  { names: ['-h', '--hostname'], takesValue: true, danger: matchPattern(/^[a-z0-9][a-z0-9.-]*$/i, 'a host name') },
  { names: ['-l', '--label'], takesValue: true, danger: matchPattern(/^[a-z0-9]/i, 'a label') },
  {
    names: ['--tmpfs'],
    takesValue: true,
    danger: matchPattern(/^\/[^:]*(?::[a-z0-9=,]+)?$/i, 'an absolute directory'),
  },
  { names: ['--cap-drop'], takesValue: true, danger: matchPattern(/^[a-z_]+$/i, 'a capability') },
  {
    names: ['--security-opt'],
    takesValue: true,
    danger: matchPattern(/^no-new-privileges(?:[:=]true)?$/, '"no-new-privileges"'),
  },
  { names: ['--network', '--net'], takesValue: true, danger: networkDanger },
  {
    names: ['--add-host'],
    takesValue: true,
    danger: matchPattern(/^[a-z0-9][a-z0-9.-]*[:=]host-gateway$/i, '<name>:host-gateway'),
  },
  { names: ['-p', '--publish'], takesValue: true, danger: publishDanger },
  { names: ['-v', '--volume'], takesValue: true, danger: volumeDanger },
  { names: ['--mount'], takesValue: true, danger: mountDanger },
];

const BY_NAME: ReadonlyMap<string, DockerOption> = new Map(
  OPTIONS.flatMap((option) => option.names.map((name) => [name, option] as const)),
);

/** The parsed arguments of `docker run`. */
interface DockerRun {
  readonly options: readonly { readonly name: string; readonly value: string | null }[];
  readonly image: string;
  /** The arguments for the program in the container. */
  readonly args: readonly string[];
}

/** Whether the option takes a value; null if it is not allowed. */
export function dockerOptionTakesValue(name: string): boolean | null {
  return BY_NAME.get(name)?.takesValue ?? null;
}

/** Checks an option and its value; null if it is fine. An unlisted option is refused. */
export function dockerOptionDanger(name: string, value: string | null): Danger | null {
  const option = BY_NAME.get(name);
  if (option === undefined) {
    return refuse(
      'docker_option',
      `gives docker the option ${quoteWord(name)}, which is not one of those that a server may be started with`,
    );
  }
  if (!option.takesValue)
    return value === null ? null : refuse('docker_option', `gives docker ${name} a value; write it alone`);
  if (value === null || value === '') return refuse('docker_option', `gives docker ${name} without its value`);
  return option.danger?.(value) ?? null;
}

/**
 * Reads the arguments of `docker run` as docker does, for the allowed options only. Whether an unknown option takes a value
 * is unknown too, so parsing ends there with a refusal.
 */
export function readDockerRun(args: readonly string[]): {
  readonly run: DockerRun | null;
  readonly dangers: readonly Danger[];
} {
  const options: { name: string; value: string | null }[] = [];
  const dangers: Danger[] = [];
  let index = 0;
  for (; index < args.length; index += 1) {
    const word = args[index] ?? '';
    if (!word.startsWith('-')) break;
    for (const option of parseOptionWord(word)) {
      const value =
        option.value ?? (BY_NAME.get(option.name)?.takesValue === true ? (args[(index += 1)] ?? null) : null);
      const danger = dockerOptionDanger(option.name, value);
      if (danger !== null) dangers.push(danger);
      if (danger?.code === 'docker_option') return { run: null, dangers };
      options.push({ name: option.name, value });
    }
  }
  const image = args[index];
  if (image === undefined) return { run: null, dangers: [...dangers, refuse('docker_command', 'names no image')] };
  return { run: { options, image, args: args.slice(index + 1) }, dangers };
}

/** `--name=value` and `--name`; `-n`; and combined letters only if none takes a value (`-di` is refused as `-d`). */
function parseOptionWord(word: string): readonly { readonly name: string; readonly value: string | null }[] {
  const equals = word.indexOf('=');
  if (word.startsWith('--')) {
    return [equals < 0 ? { name: word, value: null } : { name: word.slice(0, equals), value: word.slice(equals + 1) }];
  }
  const letters = word.slice(1);
  const isCluster =
    letters.length > 1 && Array.from(letters).every((letter) => BY_NAME.get(`-${letter}`)?.takesValue === false);
  if (isCluster) return Array.from(letters, (letter) => ({ name: `-${letter}`, value: null }));
  return [{ name: word, value: null }];
}

function matchPattern(pattern: RegExp, what: string): (value: string) => Danger | null {
  return (value) =>
    pattern.test(value) ? null : refuse('docker_option', `gives docker ${quoteWord(value)} where ${what} belongs`);
}

function networkDanger(value: string): Danger | null {
  if (value === 'host' || value.includes(':') || value.includes('=')) {
    return refuse(
      'docker_network',
      `puts the container on the network of ${value === 'host' ? 'this machine' : quoteWord(value)}, where it reaches every local service; use a network of its own`,
    );
  }
  return matchPattern(/^[a-z0-9][a-z0-9_.-]*$/i, 'the name of a network')(value);
}

function publishDanger(value: string): Danger | null {
  const match = /^(?:(\d{1,3}(?:\.\d{1,3}){3}):)?(?:\d{1,5}:)?\d{1,5}(?:\/(?:tcp|udp))?$/.exec(value);
  if (match === null) return refuse('docker_option', `gives docker ${quoteWord(value)} where ports belong`);
  if (match[1] === '127.0.0.1') return null;
  return warn('docker_publish', `opens the port ${quoteWord(value)} of the container to the network of this machine`);
}
