import { completeInstallation, type CompletedInstallation } from '../complete_installation.ts';
import type { InputValues } from '../install/input_values.ts';
import type { InstallationPlan, NotInstallable } from '../install/plan.ts';
import { planInstallation } from '../installation.ts';
import { readRegistryEntry, type RegistryEntry } from '../registry_entry.ts';
import { SERVER_ID } from './servers.ts';

/** A registry entry; throws if it is invalid. */
export function entryOf(value: unknown): RegistryEntry {
  const result = readRegistryEntry(value);
  if (!result.ok) throw new Error(result.error);
  return result.value;
}

/** An entry with this one package, as a publisher writes it. */
export function packageEntry(
  item: Readonly<Record<string, unknown>>,
  server: Readonly<Record<string, unknown>> = {},
): RegistryEntry {
  const known = { registryType: 'npm', identifier: '@acme/demo', version: '1.2.3', transport: { type: 'stdio' } };
  return entryOf({
    name: 'io.example/demo',
    description: 'A demo',
    version: '1.2.3',
    packages: [{ ...known, ...item }],
    ...server,
  });
}

/** An entry with this one remote. */
export function remoteEntry(remote: Readonly<Record<string, unknown>>): RegistryEntry {
  const known = { type: 'streamable-http', url: 'https://mcp.example.com/mcp' };
  return entryOf({ name: 'io.example/demo', version: '1.2.3', remotes: [{ ...known, ...remote }] });
}

/** The plan of an entry; throws if there is none. */
export function planOf(entry: RegistryEntry): InstallationPlan {
  const plan = planInstallation(entry);
  if (!plan.ok) throw new Error(plan.error.message);
  return plan.value;
}

/** Why an entry has no plan; throws if there is one. */
export function refusalOfEntry(entry: RegistryEntry): NotInstallable {
  const plan = planInstallation(entry);
  if (plan.ok) throw new Error('the entry can be installed');
  return plan.error;
}

/** The configuration from an entry; throws if an input is missing or invalid. */
export function installEntry(entry: RegistryEntry, values: InputValues = {}): CompletedInstallation {
  const completed = completeInstallation(planOf(entry), SERVER_ID, values);
  if (!completed.ok) throw new Error(completed.error.map(({ input, message }) => `${input} ${message}`).join('; '));
  return completed.value;
}
