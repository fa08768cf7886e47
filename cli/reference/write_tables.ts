import { readFileSync, writeFileSync } from 'node:fs';
import {
  renderCommandTable,
  renderQuotaTable,
  renderSettingsTable,
  renderSourceTable,
  withTable,
} from './reference.ts';
import { referenceProgram } from './reference_program.ts';

/** Writes the generated tables of docs: `node cli/reference/write_tables.ts`. A test fails if they are out of date. */
writeTable('reference/settings.md', 'settings', renderSettingsTable());
writeTable('reference/quotas.md', 'quotas', renderQuotaTable());
writeTable('reference/commands.md', 'cli', renderCommandTable(await referenceProgram()));
writeTable('credential_sources.md', 'kinds', renderSourceTable());

function writeTable(file: string, name: string, text: string): void {
  const path = new URL(`../../docs/${file}`, import.meta.url);
  writeFileSync(path, withTable(readFileSync(path, 'utf8'), name, text));
}
