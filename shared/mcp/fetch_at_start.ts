import { fetchedPackages } from './dangers/package_runners.ts';
import { readPackageCommand } from './package_command.ts';

/**
 * For a person: that a command fetches its package when it starts, and what to write so that svc installs it before (decision 0157).
 * Null for a command that fetches nothing, or whose package svc installs.
 */
export function describeFetchAtStart(command: readonly string[]): string | null {
  if (readPackageCommand(command) !== null) return null;
  const [program = '', ...args] = command;
  const fetched = fetchedPackages(command);
  if (fetched === null) {
    const [first = '', second = ''] = args.filter((word) => !word.startsWith('-'));
    const script = first === 'run' ? second : first;
    return program === 'deno' && /^(?:npm|jsr|https?):/.test(script)
      ? `${describeFetch('deno')}. svc installs no packages of Deno`
      : null;
  }
  const [name = ''] = fetched.names;
  return `${describeFetch(program)}. ${HINTS[fetched.kind](name)}`;
}

function describeFetch(program: string): string {
  return `${program} fetches its package at the start, which then needs the registry and takes its time; svc checks no hash of it`;
}

const HINTS: Readonly<Record<'npm' | 'pypi' | 'nuget', (name: string) => string>> = {
  npm: (name) => `With npx -y ${name}@VERSION as the command, svc installs it once and checks it`,
  pypi: (name) => `With uvx ${name}@VERSION and no other option before it, svc installs it once and checks it`,
  nuget: () => 'svc installs no packages of NuGet',
};
