import { expect } from 'vitest';
import { foundIn, searchFiles, searchProcesses } from '../support/planted_secret.ts';

/** Where the tokens of a login could appear, besides the processes of the machine. */
export interface SearchedPlaces {
  /** The agent's home and the state directory of svc. */
  readonly folders: readonly string[];
  /** What the commands printed. */
  readonly said: readonly string[];
}

/** Expects none of the tokens in any form, in a file, a process or an output. */
export function expectHidden(tokens: readonly string[], { folders, said }: SearchedPlaces): void {
  for (const folder of folders) expect(searchFiles(folder, tokens).holding).toEqual([]);
  expect(searchProcesses(tokens).holding).toEqual([]);
  for (const token of tokens) expect(said.flatMap((text) => foundIn(text, token))).toEqual([]);
}
