import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { reapLeftOvers } from './reaper.ts';

const STUCK = `ses_${'0'.repeat(26)}`;
const OTHER = `ses_${'1'.repeat(26)}`;
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-reaper-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe('what an earlier run left behind', () => {
  it('is removed also if one folder cannot be, which is reported', async () => {
    for (const name of [STUCK, OTHER]) mkdirSync(join(directory, name));
    const remove = async (folder: string): Promise<void> => {
      if (folder.endsWith(STUCK)) throw new Error('EACCES');
      rmSync(folder, { recursive: true });
    };
    const warnings: string[] = [];
    const warn = (message: string): void => void warnings.push(message);
    await reapLeftOvers({ directory, containers: null, isLive: () => false, warn, remove });
    expect([existsSync(join(directory, STUCK)), existsSync(join(directory, OTHER))]).toEqual([true, false]);
    expect(warnings).toEqual([expect.stringMatching(/ses_0+ of an earlier run could not be removed: .*EACCES/)]);
  });
});
