import type { Client } from '@libsql/client/web';
import { LibSQLDatabase } from 'drizzle-orm/libsql/driver-core';
import { LibSQLSession } from 'drizzle-orm/libsql/session';
import { SQLiteAsyncDialect } from 'drizzle-orm/sqlite-core';
import { Slots } from './slots.ts';

/** No tables by name: queries name them themselves. */
type Schema = Record<string, never>;

/** Of a client's connections to a file. The rest is left for single reads and writes. */
const MOST_ON_A_FILE = 8;

/** Read transactions. A batch would suffice if a database server's reply were not limited in size. */
export class ReadTransactions {
  readonly #client: Client;
  /** Only for a file. Requests of other runtimes cannot wait for each other, and a server has a stream for each. */
  readonly #slots: Slots | null;

  constructor(client: Client) {
    this.#client = client;
    this.#slots = client.protocol === 'file' ? new Slots(MOST_ON_A_FILE, null) : null;
  }

  run<T>(read: (database: LibSQLDatabase) => Promise<T>): Promise<T> {
    return this.#slots === null ? this.#read(read) : this.#slots.take(() => this.#read(read));
  }

  async #read<T>(read: (database: LibSQLDatabase) => Promise<T>): Promise<T> {
    const transaction = await this.#client.transaction('read');
    const dialect = new SQLiteAsyncDialect();
    const session = new LibSQLSession<Schema, Schema>(this.#client, dialect, undefined, {}, transaction);
    try {
      return await read(new LibSQLDatabase<Schema>('async', dialect, session, undefined));
    } finally {
      // Nothing was written, so there is nothing to commit.
      transaction.close();
    }
  }
}
