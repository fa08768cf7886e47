import type { Result } from '../../model/result.ts';
import type { RegistryEntry, RegistryPackage } from '../registry_entry.ts';
import type { NotInstallable, PlanArgument } from '../install/plan.ts';
import type { PlanBuilder } from '../install/plan_builder.ts';

/** A package whose command is derived, and what is known beside it. */
export interface PackageInEntry {
  readonly entry: RegistryEntry;
  readonly package: RegistryPackage;
}

/** The command that a package is started with. */
interface PackageCommand {
  readonly command: readonly PlanArgument[];
  /** The exact release. */
  readonly version: string;
}

/** How the packages of one registry are started. */
export interface PackageRuntime {
  /** What the registry calls this kind, such as `npm`. */
  readonly registryType: string;
  /** Programs that a publisher may ask for and that this runtime stands in for; any other one is refused. */
  readonly hints: readonly string[];
  /** The program that is started; null: none is, and `command` says why. */
  readonly program: string | null;
  /** The public registry's own name, as it stands before its host's top-level domain; null: any host is part of the identifier. */
  readonly registryLabel: string | null;
  /** Derives the command. Variables, inputs and warnings go to the builder. */
  command(item: PackageInEntry, builder: PlanBuilder): Result<PackageCommand, NotInstallable>;
}
