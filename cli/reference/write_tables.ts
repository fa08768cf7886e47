import { readFileSync, writeFileSync } from 'node:fs';
import { renderCommandTable, renderQuotaTable, renderSettingsTable, withTable } from './reference.ts';
import { referenceProgram } from './reference_program.ts';

/** Writes the generated tables of docs/reference: `node cli/reference/write_tables.ts`. A test fails if they are out of date. */
writeTable('settings.md', 'settings', renderSettingsTable());
writeTable('quotas.md', 'quotas', renderQuotaTable());
writeTable('commands.md', 'cli', renderCommandTable(await referenceProgram()));

function writeTable(file: string, name: string, text: string): void {
  const path = new URL(`../../docs/reference/${file}`, import.meta.url);
  writeFileSync(path, withTable(readFileSync(path, 'utf8'), name, text));
}
