import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WORKSPACE } from '../../sandbox/launch/mount_policy.ts';
import { warnOfOwner } from './launch_inputs.ts';

const OWN = process.getuid?.() ?? 0;
const ROOTFUL = { isRootless: false, uid: OWN, firstSubordinate: null };
const ROOTLESS = { isRootless: true, uid: OWN, firstSubordinate: 100_000 };

let source: string;
beforeEach(() => {
  source = mkdtempSync(join(tmpdir(), 'svc-owner-'));
});
afterEach(() => rmSync(source, { recursive: true, force: true }));

function warningsOf(agentUid: number, engine: typeof ROOTFUL | typeof ROOTLESS, readOnly = false): string {
  const said: string[] = [];
  const print = { warn: (text: string) => void said.push(text) };
  warnOfOwner({ print }, [{ source, target: WORKSPACE, readOnly }], { uid: agentUid }, engine);
  return said.join('\n');
}

test('a project of another user than the agent is told, with what to do', () => {
  expect(warningsOf(OWN, ROOTFUL)).toBe('');
  expect(warningsOf(OWN + 1, ROOTFUL)).toContain(`belongs to user ${OWN} but the image's agent is user ${OWN + 1}`);
  expect(warningsOf(OWN + 1, ROOTFUL, true)).toBe('');
});

test('in a rootless engine it is told also if the numbers are the same, by the user that the agent is outside', () => {
  expect(warningsOf(1000, ROOTLESS)).toContain(`setfacl -R -m u:100999:rwX,d:u:100999:rwX,d:u:${OWN}:rwX ${source}`);
  expect(warningsOf(OWN, { ...ROOTLESS, firstSubordinate: null })).toContain('give the agent access');
  chmodSync(source, 0o777);
  expect(warningsOf(1000, ROOTLESS)).toBe('');
});
