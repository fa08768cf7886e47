import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

/**
 * What `bin/svc` starts in a checkout. It is JavaScript, and turns the compile cache on before it loads anything else: the cache
 * also holds our TypeScript without its types. Where a single TypeScript file is not in the cache, Node loads its compiler, which
 * takes as much CPU time as the start of Node itself. The cache is as protected as the code; it is skipped if it cannot be written.
 */
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/svc', import.meta.url)));
await import('./main.ts');
