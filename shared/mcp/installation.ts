import { isOfPublicRegistry } from './public_registry.ts';
import { err, ok, type Result } from '../model/result.ts';
import { commandDangers, refusalOf } from './command_dangers.ts';
import { quoteWord } from './dangers/danger.ts';
import { fixedText, type InstallationPlan, type InstallChoice, type NotInstallable } from './install/plan.ts';
import { MAX_INPUTS } from './install/input_collector.ts';
import { PlanBuilder } from './install/plan_builder.ts';
import { previewWords } from './install/preview.ts';
import { remoteParts } from './install/remote_plan.ts';
import { PACKAGE_RUNTIMES, runtimeOf } from './package_runtimes/runtimes.ts';
import type { PackageRuntime } from './package_runtimes/package_runtime.ts';
import { hasReference } from './references.ts';
import type { RegistryEntry, RegistryPackage } from './registry_entry.ts';
import { listHiddenCharacters } from '../model/shown_text.ts';

/** One way to install an entry: its plan, or why there is none. */
export interface InstallationOption {
  readonly choice: InstallChoice;
  readonly plan: Result<InstallationPlan, NotInstallable>;
}

/**
 * How an entry is installed: the exact command or URL, its inputs, and warnings; or why it cannot be installed safely.
 * Without a choice the best package is used (specification section 4, Marketplace): npm, else any other that can be started,
 * else a remote server, streamable HTTP before SSE. What may not run here comes after what may.
 */
export function planInstallation(
  entry: RegistryEntry,
  choice?: InstallChoice,
  mayRun: (plan: InstallationPlan) => boolean = () => true,
): Result<InstallationPlan, NotInstallable> {
  if (entry.status === 'deleted') {
    return err({
      reason: 'deleted',
      message: 'It was deleted from the registry, by its publisher or because it does harm.',
    });
  }
  if (choice !== undefined) return planChoice(entry, choice);
  let first: InstallationPlan | null = null;
  let firstProblem: NotInstallable | null = null;
  for (const candidate of choicesOf(entry)) {
    const plan = planChoice(entry, candidate);
    if (!plan.ok) firstProblem ??= plan.error;
    else if (mayRun(plan.value)) return plan;
    else first ??= plan.value;
  }
  if (first !== null) return ok(first);
  return err(
    firstProblem ?? { reason: 'nothing_to_install', message: 'It has neither a package nor a remote address.' },
  );
}

/** Every way to install an entry, best first. */
export function installationOptions(entry: RegistryEntry): readonly InstallationOption[] {
  return choicesOf(entry).map((choice) => ({ choice, plan: planInstallation(entry, choice) }));
}

/** Packages in the order of the runtimes' table, then in the publisher's order; then remotes. */
function choicesOf(entry: RegistryEntry): readonly InstallChoice[] {
  const packages = entry.packages.map((item, index) => ({ kind: 'package', index, rank: packageRank(item) }) as const);
  const remotes = entry.remotes.map(({ transport }, index) => {
    return { kind: 'remote', index, rank: PACKAGE_RUNTIMES.length + (transport === 'sse' ? 2 : 1) } as const;
  });
  const ranked = [...packages, ...remotes].toSorted((a, b) => a.rank - b.rank || a.index - b.index);
  return ranked.map(({ kind, index }) => ({ kind, index }));
}

function packageRank({ registryType }: RegistryPackage): number {
  const known = PACKAGE_RUNTIMES.findIndex((runtime) => runtime.registryType === registryType);
  return known < 0 ? PACKAGE_RUNTIMES.length : known;
}

function planChoice(entry: RegistryEntry, choice: InstallChoice): Result<InstallationPlan, NotInstallable> {
  const builder = new PlanBuilder();
  const plan = choice.kind === 'remote' ? planRemote(entry, choice, builder) : planPackage(entry, choice, builder);
  if (!plan.ok) return plan;
  if (builder.inputs.isOverfull) {
    return err({
      reason: 'too_many_inputs',
      message: `It asks for more than ${MAX_INPUTS} values, or for too many in one.`,
    });
  }
  if (entry.status === 'deprecated') builder.warn('deprecated', 'its publisher has deprecated it');
  warnOfHiddenCharacters(entry, plan.value, builder);
  if (hasOwnReference(plan.value)) {
    return err({
      reason: 'command_refused',
      message: "Its entry names a place in the vault, which is not the publisher's to name.",
    });
  }
  warnOfSecretArguments(builder);
  // Words that contain a value are checked once the value is known.
  const known = plan.value.command.filter(({ value }) => value === null || fixedText(value) !== null);
  const dangers = plan.value.mode === 'remote' ? [] : commandDangers(previewWords(known), fixedEnv(plan.value));
  const refusal = refusalOf(dangers);
  if (refusal !== null) {
    return err({ reason: 'command_refused', message: `Its entry is not started: the server ${refusal.message}.` });
  }
  for (const { code, message } of dangers) builder.warn(code, `the server ${message}`);
  return ok({ ...plan.value, inputs: builder.inputs.inputs, warnings: builder.warnings });
}

function planRemote(
  entry: RegistryEntry,
  choice: InstallChoice,
  builder: PlanBuilder,
): Result<InstallationPlan, NotInstallable> {
  const remote = entry.remotes[choice.index];
  if (remote === undefined) return noSuchChoice(choice);
  const parts = remoteParts(remote, entry, builder);
  if (!parts.ok) return parts;
  const { url, headers } = parts.value;
  const version = entry.version;
  return ok({
    ...emptyPlan(entry, choice),
    ecosystem: 'remote',
    mode: 'remote',
    version,
    url,
    transport: remote.transport,
    headers,
  });
}

function planPackage(
  entry: RegistryEntry,
  choice: InstallChoice,
  builder: PlanBuilder,
): Result<InstallationPlan, NotInstallable> {
  const item = entry.packages[choice.index];
  if (item === undefined) return noSuchChoice(choice);
  const runtime = runtimeOf(item.registryType);
  if (runtime === undefined) {
    const message = `Its package is of the registry ${quoteWord(item.registryType)}; those of npm, PyPI, OCI and NuGet can be installed.`;
    return err({ reason: 'unsupported_registry', message });
  }
  const problem =
    packageProblem(item, runtime, builder) ??
    (runtime.program === null ? null : builder.addEnvironment(item.environmentVariables));
  if (problem !== null) return err(problem);
  const derived = runtime.command({ entry, package: item }, builder);
  if (!derived.ok) return derived;
  const { command, version } = derived.value;
  return ok({ ...emptyPlan(entry, choice), ecosystem: runtime.registryType, version, command, env: builder.env });
}

/** Reasons to reject a package regardless of its arguments. */
function packageProblem(item: RegistryPackage, runtime: PackageRuntime, builder: PlanBuilder): NotInstallable | null {
  if (runtime.program === null) return null;
  if (item.transport !== 'stdio') {
    const message = `Its package is a server that listens for ${quoteWord(item.transport)}; one that speaks on standard streams (stdio) can be started here. Start it yourself, and add the address where it listens: svc mcp add NAME --url http://127.0.0.1:PORT/mcp (docs/mcp.md, "Bundles and servers that listen").`;
    return { reason: 'unsupported_transport', message };
  }
  if (!isOfPublicRegistry(item.registryBaseUrl, runtime.registryLabel)) {
    const message = `Its package is published in another registry, ${quoteWord(item.registryBaseUrl ?? '')}: ${runtime.program} would look for it elsewhere, and find somebody else's.`;
    return { reason: 'foreign_registry', message };
  }
  const hint = item.runtimeHint;
  if (hint === null || hint === '' || hint === runtime.program) return null;
  if (!runtime.hints.includes(hint)) {
    const message = `It asks to be started with ${quoteWord(hint)}, which is none of the programs that packages are started with.`;
    return { reason: 'runtime_not_allowed', message };
  }
  builder.warn(
    'runtime_hint_ignored',
    `it asks to be started with ${quoteWord(hint)}, and is started with ${runtime.program}`,
  );
  return null;
}

function warnOfSecretArguments(builder: PlanBuilder): void {
  const secrets = builder.inputs.inputs.filter(({ secret, targets }) => secret && targets.includes('argument'));
  for (const { name } of secrets) {
    const message = `the secret ${quoteWord(name)} is an argument, which every program of the machine can list while it runs`;
    builder.warn('secret_in_arguments', message);
  }
}

function warnOfHiddenCharacters(entry: RegistryEntry, plan: InstallationPlan, builder: PlanBuilder): void {
  const inputs = builder.inputs.inputs.flatMap((input) => [input.description, input.default ?? '', ...input.choices]);
  const fixed = [...Object.values(fixedEnv(plan)), entry.title ?? '', entry.description];
  const hidden = [...new Set([...fixed, ...inputs].flatMap((text) => listHiddenCharacters(text)))];
  if (hidden.length === 0) return;
  builder.warn('hidden_characters', `its texts have characters that are not shown (${hidden.join(', ')})`);
}

/** Whether a publisher's text contains a vault reference, which would be filled with a credential. */
function hasOwnReference(plan: InstallationPlan): boolean {
  const url = plan.url === null ? [] : [plan.url.authority, plan.url.path, plan.url.query ?? []];
  const fields = [...plan.env, ...plan.headers].map(({ value }) => value);
  const words = plan.command.flatMap(({ flag, value }) => [
    ...(value ?? []),
    { kind: 'text' as const, text: flag ?? '' },
  ]);
  return [...url, ...fields, words].flat().some((piece) => piece.kind === 'text' && hasReference(piece.text));
}

function fixedEnv(plan: InstallationPlan): Readonly<Record<string, string>> {
  const entries = plan.env.map(({ name, value }) => {
    const text = value.map((piece) => (piece.kind === 'text' ? piece.text : '')).join('');
    return [name, text] as const;
  });
  return Object.fromEntries(entries);
}

function emptyPlan(entry: RegistryEntry, choice: InstallChoice): InstallationPlan {
  const nothing = { url: null, transport: null, headers: [], command: [], env: [], inputs: [], warnings: [] };
  return { registryId: entry.name, choice, ecosystem: '', mode: 'local', version: null, ...nothing };
}

function noSuchChoice({ kind, index }: InstallChoice): Result<never, NotInstallable> {
  return err({ reason: 'no_such_choice', message: `The entry has no ${kind} number ${index + 1}.` });
}
