import { readdirSync, readFileSync } from 'node:fs';

const FIRST = 3;
/** `O_CLOEXEC` in the octal flags of `/proc/self/fdinfo`. */
const CLOSED_ON_EXEC = 0o2000000;

/** The descriptors of this process that a program which it starts would get besides standard input, output and error. */
export function listInherited(folder = '/proc/self'): readonly number[] {
  return namesIn(`${folder}/fd`)
    .map(Number)
    .filter((descriptor) => descriptor >= FIRST && isInherited(`${folder}/fdinfo/${descriptor}`));
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** False if it is closed by now, as the one that listed the folder. */
function isInherited(file: string): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(file, 'latin1'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSED_ON_EXEC) === 0;
  } catch {
    return false;
  }
}
