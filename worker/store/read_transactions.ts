import type { Client } from '@libsql/client/web';
import { LibSQLDatabase } from 'drizzle-orm/libsql/driver-core';
import { LibSQLSession } from 'drizzle-orm/libsql/session';
import { SQLiteAsyncDialect } from 'drizzle-orm/sqlite-core';
import { Places } from './places.ts';

/** No tables by name: queries name them themselves. */
type Schema = Record<string, never>;

/** Of the connections that a client has to a file: some are left for whoever reads or writes one statement. */
const MOST_ON_A_FILE = 8;

/** Read transactions. A batch would do, were there no largest size for one reply of a database server. */
export class ReadTransactions {
  readonly #client: Client;
  /** Only for a file: requests of other runtimes may not wait for one another, and a server has a stream for each. */
  readonly #places: Places | null;

  constructor(client: Client) {
    this.#client = client;
    this.#places = client.protocol === 'file' ? new Places(MOST_ON_A_FILE, null) : null;
  }

  run<T>(read: (database: LibSQLDatabase) => Promise<T>): Promise<T> {
    return this.#places === null ? this.#read(read) : this.#places.take(() => this.#read(read));
  }

  async #read<T>(read: (database: LibSQLDatabase) => Promise<T>): Promise<T> {
    const transaction = await this.#client.transaction('read');
    const dialect = new SQLiteAsyncDialect();
    const session = new LibSQLSession<Schema, Schema>(this.#client, dialect, undefined, {}, transaction);
    try {
      return await read(new LibSQLDatabase<Schema>('async', dialect, session, undefined));
    } finally {
      // Nothing was written: there is nothing to commit.
      transaction.close();
    }
  }
}
