import { writeFileSync } from 'node:fs';
import { channelSchemas } from './channel_schemas.ts';

/**
 * Records the channel of this version, which the next versions are compared with: `node tools/protocol/record.ts`. It runs once for a
 * release, after it was made.
 */
export const RECORDED = new URL('previous_channel.json', import.meta.url);

if (import.meta.main) writeFileSync(RECORDED, `${JSON.stringify(channelSchemas())}\n`);
