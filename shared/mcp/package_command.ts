import { npmSpecText, readNpmCommand } from './npm_command.ts';
import type { PackageSpec } from './package_specs.ts';
import { type PythonSpec, readPythonCommand } from './python_command.ts';

/** A package of an npm registry. */
export interface NpmSpec extends PackageSpec {
  readonly kind: 'npm';
}

/** A package that svc installs for a server. */
export type InstallSpec = NpmSpec | PythonSpec;

/** The package that a command runs, and the arguments of its program. */
export interface PackageCommand {
  readonly spec: InstallSpec;
  readonly args: readonly string[];
}

/** Reads a command whose package svc installs; null for every other one, which is started as it is. */
export function readPackageCommand(command: readonly string[]): PackageCommand | null {
  const npm = readNpmCommand(command);
  return npm === null ? readPythonCommand(command) : { ...npm, spec: { ...npm.spec, kind: 'npm' } };
}

/** The package for a person, such as `name@1.0.0`. */
export function packageText(spec: InstallSpec): string {
  if (spec.kind === 'npm') return npmSpecText(spec);
  return `${spec.name}${spec.extras}@${spec.version ?? 'latest'}`;
}

/** The same text for two commands that can share an install. */
export function installKey(spec: InstallSpec): string {
  return spec.kind === 'npm' ? npmSpecText(spec) : `${packageText(spec)} ${spec.program}`;
}
