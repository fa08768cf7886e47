import { execFile } from 'node:child_process';
import { parseLastWords, progressOf, readLines } from '../up/node_program.ts';
import { EXIT } from '../exit_codes.ts';

/** The result of one of our programs. */
interface Ended {
  readonly exitCode: number;
  readonly stdout: string;
  /** The message of its last log line. */
  readonly lastWords: string;
}

const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;

/** Runs one of our programs under this Node until it ends. */
export function runToEnd(program: {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  /** What it reads on stdin; by default nothing. */
  readonly input?: string;
  /** Receives its progress messages. */
  readonly onProgress?: (progress: string) => void;
}): Promise<Ended> {
  const args = [...process.execArgv, program.file, ...program.args];
  return new Promise((done) => {
    const { env, workingDirectory: cwd } = program;
    const child = execFile(
      process.execPath,
      args,
      { env, cwd, maxBuffer: MAX_OUTPUT_BYTES },
      (error, stdout, stderr) => {
        const exitCode = error === null ? EXIT.ok : (child.exitCode ?? EXIT.failed);
        done({
          exitCode,
          stdout,
          lastWords: parseLastWords(stderr.trim().split('\n')).at(-1) ?? 'the program ended without a message',
        });
      },
    );
    // It may end before it has read everything: then its exit code says why.
    child.stdin?.on('error', () => undefined);
    if (program.input !== undefined) child.stdin?.end(program.input);
    if (child.stderr !== null) {
      readLines(child.stderr, (line) => {
        const progress = progressOf(line);
        if (progress !== null) program.onProgress?.(progress);
      });
    }
  });
}
