import type { Database } from '../database.ts';

/** Ends a run at one of its writes: before the write, or right after it with the reply lost. */
export function killAtWrite(database: Database, write: number, when: 'before' | 'after'): Database {
  let count = 0;
  return {
    ...database,
    async write(statements) {
      const isLast = count === write;
      count += 1;
      if (isLast && when === 'before') throw new Error('killed');
      const written = await database.write(statements);
      if (isLast) throw new Error('killed');
      return written;
    },
  };
}
