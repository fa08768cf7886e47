import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { SETTINGS } from '../shared/model/settings.ts';
import { renderCommandTable, renderSettingsTable, rowsOf, tableRows, withTable } from './reference/reference.ts';
import { referenceProgram } from './reference/reference_program.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

describe('the README (node cli/reference/readme_tables.ts writes its tables)', () => {
  test('lists every setting as the code has it', () => {
    expect(tableRows(readme, 'settings')).toEqual(rowsOf(renderSettingsTable()));
  });

  test('lists every command and exit code as the code has it', () => {
    expect(tableRows(readme, 'cli')).toEqual(rowsOf(renderCommandTable(referenceProgram())));
  });
});

describe('the generated tables', () => {
  test('have a row for each setting', () => {
    const table = renderSettingsTable();
    expect(SETTINGS.filter((setting) => !table.includes(`\`${setting.name}\``))).toEqual([]);
  });

  test('name each command with its arguments', () => {
    const table = renderCommandTable(referenceProgram());
    for (const command of ['svc secret set PATH', 'svc run -- COMMAND...', 'svc audit verify', 'svc api METHOD PATH']) {
      expect(table).toContain(`\`${command}\``);
    }
  });

  test('replace what stands between the markers, and nothing else', () => {
    const before = 'a\n<!-- cli -->\nold\n<!-- /cli -->\nb\n';
    const after = withTable(before, 'cli', '| new |\n');
    expect(after).toBe('a\n<!-- cli -->\n\n| new |\n\n<!-- /cli -->\nb\n');
    expect(withTable(after, 'cli', '| new |\n')).toBe(after);
    expect(() => withTable(before, 'settings', '')).toThrow('settings');
  });
});
