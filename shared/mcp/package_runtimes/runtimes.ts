import { mcpbRuntime } from './mcpb.ts';
import { npmRuntime } from './npm.ts';
import { nugetRuntime } from './nuget.ts';
import { ociRuntime } from './oci.ts';
import type { PackageRuntime } from './package_runtime.ts';
import { pypiRuntime } from './pypi.ts';

/** Every known package runtime, npm first because it is preferred (specification section 4, Marketplace). */
export const PACKAGE_RUNTIMES: readonly PackageRuntime[] = [
  npmRuntime,
  pypiRuntime,
  ociRuntime,
  nugetRuntime,
  mcpbRuntime,
];

/** The runtime for a registry's packages; undefined for an unknown registry. */
export function runtimeOf(registryType: string): PackageRuntime | undefined {
  return PACKAGE_RUNTIMES.find((runtime) => runtime.registryType === registryType);
}
