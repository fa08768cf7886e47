// Loaded before the control worker (`node --import`), which then starts in two thirds of the time; it needs nothing of this.
import * as modules from 'node:module';

/**
 * For each file that a package imports within itself, Node reads the package.json of the package anew, and that of drizzle-orm
 * has 180 kB and 400 such imports. A relative one is the file that lies there, as Node itself finds it.
 */
const PACKAGE = '/node_modules/drizzle-orm/';

/** Node 22.14 and older have no such hooks. */
const { registerHooks }: Partial<typeof modules> = modules;

registerHooks?.({
  resolve(specifier, context, next) {
    const importer = context.parentURL;
    if (importer?.includes(PACKAGE) !== true || !/^\.\.?\/.*\.js$/.test(specifier)) return next(specifier, context);
    return { url: new URL(specifier, importer).href, format: 'module', shortCircuit: true };
  },
});
