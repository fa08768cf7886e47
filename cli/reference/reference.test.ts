import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { SETTINGS } from '../../shared/model/settings.ts';
import {
  renderCommandTable,
  renderQuotaTable,
  renderSettingsTable,
  renderSourceTable,
  rowsOf,
  tableRows,
  withTable,
} from './reference.ts';
import { referenceProgram } from './reference_program.ts';

const document = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8');

describe('docs (node cli/reference/write_tables.ts writes its tables)', () => {
  test('lists every setting of the code', () => {
    expect(tableRows(document('reference/settings.md'), 'settings')).toEqual(rowsOf(renderSettingsTable()));
  });

  test('lists every quota of the code', () => {
    expect(tableRows(document('reference/quotas.md'), 'quotas')).toEqual(rowsOf(renderQuotaTable()));
  });

  test('lists every command and exit code of the code', async () => {
    expect(tableRows(document('reference/commands.md'), 'cli')).toEqual(
      rowsOf(renderCommandTable(await referenceProgram())),
    );
  });

  test('lists every kind of source of the code, with its fields', () => {
    expect(tableRows(document('credential_sources.md'), 'kinds')).toEqual(rowsOf(renderSourceTable()));
  });
});

describe('the generated tables', () => {
  test('have a row for each setting', () => {
    const table = renderSettingsTable();
    expect(SETTINGS.filter((setting) => !table.includes(`\`${setting.name}\``))).toEqual([]);
  });

  test('name each command with its arguments', async () => {
    const table = renderCommandTable(await referenceProgram());
    for (const command of ['svc secret set PATH', 'svc run -- COMMAND...', 'svc audit verify', 'svc api METHOD PATH']) {
      expect(table).toContain(`\`${command}\``);
    }
  });

  test('replace only the text between the markers', () => {
    const before = 'a\n<!-- cli -->\nold\n<!-- /cli -->\nb\n';
    const after = withTable(before, 'cli', '| new |\n');
    expect(after).toBe('a\n<!-- cli -->\n\n| new |\n\n<!-- /cli -->\nb\n');
    expect(withTable(after, 'cli', '| new |\n')).toBe(after);
    expect(() => withTable(before, 'settings', '')).toThrow('settings');
  });
});
