import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { completeInstallation, type CompletedInstallation } from '../shared/mcp/complete_installation.ts';
import { previewUrl, previewWords } from '../shared/mcp/install/preview.ts';
import type { InstallationPlan, PlanInput } from '../shared/mcp/install/plan.ts';
import type { InputValues } from '../shared/mcp/install/input_values.ts';
import { planInstallation } from '../shared/mcp/installation.ts';
import { readRegistryEntry } from '../shared/mcp/registry_entry.ts';

const SERVER_ID = 'mcp_00000000000000000000000001';
const list = z.union([
  z.array(z.unknown()),
  z.object({ servers: z.array(z.unknown()) }).transform(({ servers }) => servers),
]);

/** The outcome for one entry. */
interface Outcome {
  readonly name: string;
  readonly ecosystem: string;
  readonly result: 'installs' | 'asks' | 'refused' | 'unreadable';
  readonly reason: string;
  readonly shown: string;
}

/** Prints the outcome for every entry of a data folder: how many install, by ecosystem, and why the others do not. */
function main(folder: string | undefined, wanted: string | undefined): void {
  if (folder === undefined) throw new Error('usage: node bench/registry_install.ts DATA_FOLDER [REASON]');
  for (const [title, entries] of collections(folder)) {
    const startedAt = performance.now();
    const outcomes = entries.map((entry) => outcomeOf(entry));
    const ms = performance.now() - startedAt;
    print(`\n## ${title}: ${entries.length} entries, ${(ms / entries.length).toFixed(3)} ms each`);
    printCounts(outcomes);
    printRefusals(outcomes);
    for (const { reason, name, shown } of outcomes) if (reason === wanted) print(`${name}\n    ${shown}`);
  }
}

function collections(folder: string): readonly (readonly [string, readonly unknown[]])[] {
  const files = readdirSync(folder).filter((name) => name.startsWith('mcp-registry') && name.endsWith('.json'));
  const lists = files.map((name) => [name, list.parse(JSON.parse(readFileSync(join(folder, name), 'utf8')))] as const);
  const single = join(folder, 'mcp-server-json');
  if (!existsSync(single)) return lists;
  const names = readdirSync(single).filter((name) => name.endsWith('.json'));
  const entries = names.map((name): unknown => JSON.parse(readFileSync(join(single, name), 'utf8')));
  return [...lists, ['mcp-server-json', entries]];
}

function outcomeOf(value: unknown): Outcome {
  const entry = readRegistryEntry(value);
  if (!entry.ok) return { name: '?', ecosystem: '-', result: 'unreadable', reason: entry.error, shown: '' };
  const { name } = entry.value;
  const plan = planInstallation(entry.value);
  if (!plan.ok) {
    const { reason, message } = plan.error;
    const kinds = new Set(entry.value.packages.map(({ registryType }) => registryType));
    return { name, ecosystem: [...kinds].join('+') || '-', result: 'refused', reason, shown: message };
  }
  return completePlan(name, plan.value);
}

function completePlan(name: string, plan: InstallationPlan): Outcome {
  const { ecosystem } = plan;
  const bare = completeInstallation(plan, SERVER_ID, {});
  if (bare.ok)
    return { name, ecosystem, result: 'installs', reason: 'installs', shown: describeInstallation(bare.value) };
  const answered = completeInstallation(plan, SERVER_ID, answers(plan));
  const shown = previewUrl(plan) ?? previewWords(plan.command).join(' ');
  if (answered.ok) return { name, ecosystem, result: 'asks', reason: 'asks', shown };
  const problems = answered.error.map(({ input, message }) => `${input} ${message}`).join('; ');
  return { name, ecosystem, result: 'refused', reason: 'cannot be answered', shown: `${shown}: ${problems}` };
}

/** A value for every required input. */
function answers(plan: InstallationPlan): InputValues {
  const asked = plan.inputs.filter(({ required, default: given }) => required && given === null);
  return Object.fromEntries(asked.map((input) => [input.name, answer(input)]));
}

function answer({ choices, format, goesTo, name }: PlanInput): string {
  if (choices[0] !== undefined) return choices[0];
  if (format === 'number' || /port/i.test(name)) return '8080';
  if (format === 'boolean') return 'true';
  return format === 'filepath' || goesTo.some((place) => /docker (?:-v|--volume|--mount)/.test(place))
    ? '/srv/project'
    : 'value';
}

function describeInstallation({ command, url, requiredCredentials }: CompletedInstallation): string {
  const lacking = requiredCredentials.filter(({ required }) => required).map((one) => one.name);
  return `${url ?? command.join(' ')}${lacking.length === 0 ? '' : `   needs ${lacking.join(', ')}`}`;
}

function printCounts(outcomes: readonly Outcome[]): void {
  const counts = new Map<string, number>();
  for (const { result, ecosystem, reason } of outcomes) {
    const key =
      result === 'refused' || result === 'unreadable'
        ? `${result}: ${reason} (${ecosystem})`
        : `${result}: ${ecosystem}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const total = (result: Outcome['result']) => outcomes.filter((outcome) => outcome.result === result).length;
  print(
    `installs ${total('installs')}, after answers ${total('asks')}, refused ${total('refused')}, unreadable ${total('unreadable')}`,
  );
  for (const [key, count] of [...counts].toSorted(([, a], [, b]) => b - a))
    print(`${String(count).padStart(6)}  ${key}`);
}

/** The reasons of the entries that are not installed, with the number of entries for each. */
function printRefusals(outcomes: readonly Outcome[]): void {
  const counts = new Map<string, number>();
  for (const { result, shown } of outcomes) {
    if (result === 'refused') counts.set(shown, (counts.get(shown) ?? 0) + 1);
  }
  for (const [sentence, count] of [...counts].toSorted(([, a], [, b]) => b - a))
    print(`${String(count).padStart(6)}x ${sentence}`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

main(process.argv[2], process.argv[3]);
