import { readFileSync, writeFileSync } from 'node:fs';
import { renderCommandTable, renderSettingsTable, withTable } from './reference.ts';
import { referenceProgram } from './reference_program.ts';

/** Writes the README's generated tables: `node cli/reference/readme_tables.ts`. A test says when they are out of date. */
const path = new URL('../../README.md', import.meta.url);
const markdown = readFileSync(path, 'utf8');
const withSettings = withTable(markdown, 'settings', renderSettingsTable());
writeFileSync(path, withTable(withSettings, 'cli', renderCommandTable(referenceProgram())));
