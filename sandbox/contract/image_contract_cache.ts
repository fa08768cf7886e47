import { join } from 'node:path';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';
import type { ImageChecks } from './image_contract.ts';
import { imageFacts, type ImageFacts } from './image_contract_facts.ts';
import { probeScript } from './image_contract_probe.ts';
import { parseJson } from '../../shared/model/json.ts';
import { sha256Hex } from '../../machine/sha256.ts';

const MAX_IMAGES = 100;
const MAX_FILE_LENGTH = 256 * 1024;

/** A cached result is valid as long as the probe stays the same. */
const PROBE_DIGEST = sha256Hex(probeScript('agent'));

/** Oldest first. */
const checksFile = z.strictObject({ probe: z.literal(PROBE_DIGEST), images: z.array(imageFacts) });

/**
 * The cache of passed image checks, in `image_checks.json` of the state directory. It is optional: a file that is damaged, too
 * large, of another version or open to other users is ignored, and `warn` is called if it cannot be written.
 */
export function imageChecksIn(home: string, warn: (text: string) => void): ImageChecks {
  const path = join(home, 'image_checks.json');
  return {
    find: (imageId) => readImages(path).find((known) => known.imageId === imageId) ?? null,
    async keep(facts) {
      const others = readImages(path).filter((known) => known.imageId !== facts.imageId);
      const images = [...others, facts].slice(-MAX_IMAGES);
      try {
        await writePrivateFile(path, `${JSON.stringify({ probe: PROBE_DIGEST, images })}\n`);
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        warn(`the check of the image was not cached: ${why}`);
      }
    },
  };
}

function readImages(path: string): readonly ImageFacts[] {
  const read = readPrivateFile(path);
  if (!read.ok || read.value === null || read.value.length > MAX_FILE_LENGTH) return [];
  const parsed = checksFile.safeParse(parseJson(read.value));
  return parsed.success ? parsed.data.images : [];
}
